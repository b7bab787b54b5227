//! What the C library would bring along, and nobody here needs: ninety kilobytes in a static program.
//!
//! - Whoever creates a thread shows it where the library's resolver keeps its state. That word lives beside the resolver,
//!   which would come along with all that it reads its files with; we have a resolver of our own (`src/resolve.rs`). The
//!   word alone does.
//! - A failed assertion of the library is told in the letters of the locale, wide ones included. Ours is told in ASCII.
//!
//! Both are weak: where the library's own are there (a debug build contains everything), they are used.

std::arch::global_asm!(
    ".pushsection .tbss.__libc_resp,\"awT\",@nobits",
    ".weak __libc_resp",
    ".type __libc_resp, @object",
    ".size __libc_resp, 8",
    ".p2align 3",
    "__libc_resp:",
    ".zero 8",
    ".popsection",
    ".pushsection .text.__assert_fail,\"ax\",@progbits",
    ".weak __assert_fail",
    ".type __assert_fail, @function",
    "__assert_fail:",
    "jmp {asserted}",
    ".size __assert_fail, . - __assert_fail",
    ".popsection",
    asserted = sym super::asserted,
);
