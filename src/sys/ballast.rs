//! What the C library would bring along, and nobody here needs: 360 kilobytes in a static program.
//!
//! The library is linked in pieces, and some pieces that are needed mention others for the sake of a case that does not
//! come up here. Each word below stands in for what is mentioned there, and behind each of them are a dozen pieces more:
//! streams, locales, conversions of letters, a loader of plug-ins. So this program does not only do without them; it
//! has nothing that could read a locale or load a plug-in of the image's.
//!
//! All are weak: where the library's own are linked in for another reason, those are used. In a debug build, which
//! contains all of the standard library and thus most of the C library, there are only the first two.

/// A function that is nothing but a few instructions.
macro_rules! function {
    ($name:literal, $($line:literal),+ $(; $operand:ident = $path:path)?) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            concat!(".weak ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            $($line,)+
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            $($operand = sym $path,)?
        );
    };
}

/// Zeros.
macro_rules! zeros {
    ($name:literal, $section:literal, $size:literal) => {
        std::arch::global_asm!(
            concat!(".pushsection ", $section),
            concat!(".weak ", $name),
            concat!(".type ", $name, ", @object"),
            concat!(".size ", $name, ", ", $size),
            ".p2align 4",
            concat!($name, ":"),
            concat!(".zero ", $size),
            ".popsection",
        );
    };
}

// Whoever creates a thread shows it where the library's resolver keeps its state. We have a resolver of our own.
zeros!("__libc_resp", ".tbss.__libc_resp,\"awT\",@nobits", 8);

// An assertion that fails is told in the letters of the locale, wide ones included. Ours is told in ASCII.
function!("__assert_fail", "jmp {asserted}"; asserted = super::asserted);

#[cfg(not(debug_assertions))]
mod silent {
    // Whoever creates the first thread has streams locked from then on. There are none.
    function!("_IO_enable_locks", "ret");

    // The words for an error are looked up in the language of the user. Without a locale they stay what they are.
    function!("__dcgettext", "mov rax, rsi", "ret");

    // An error without a name is told by its number, which whoever shows it here does anyway; and so is a failure of the
    // kernel's in telling us of our addresses, before the end. They become empty.
    function!("__snprintf", "xor eax, eax", "test rsi, rsi", "jz 2f", "mov byte ptr [rdi], al", "2:", "ret");

    // The name of another thread would be written to a file that is called after its number; each names itself.
    function!("sprintf", "xor eax, eax", "mov byte ptr [rdi], al", "ret");

    // The allocator can print statistics about itself, if asked.
    function!("fprintf", "mov eax, -1", "ret");
    zeros!("stderr", ".bss.stderr,\"aw\",@nobits", 8);

    // The standard library looks for functions that its C library may not have yet. In a static program there is nowhere
    // to look, and the answer has always been this.
    function!("dlsym", "xor eax, eax", "ret");

    // The table of letters says how they are converted to wide ones.
    zeros!("__wcsmbs_gconv_fcts_c", ".rodata.__wcsmbs_gconv_fcts_c,\"a\",@progbits", 64);
}
