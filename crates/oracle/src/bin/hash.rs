use containerpilot_oracle::{nth_seed, random, runner};
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut total = 0u64;
    for nth in 0..n {
        let seed = nth_seed(0, nth);
        let mut t = String::new();
        let r = runner::run(&random::scenario(seed), Some(&mut t));
        let mut h = 0xcbf29ce484222325u64;
        for line in t.lines() {
            if line.contains("→ Log") {
                continue;
            }
            let line = if let Some(i) = line.find("StartFailed") {
                &line[..i + 24]
            } else if let Some(i) = line.find("result: Err") {
                &line[..i]
            } else if let Some(i) = line.find("pid: ") {
                &line[..i]
            } else if let Some(i) = line.find(" Some(\"") {
                &line[..i]
            } else {
                line
            };
            for b in line.bytes() {
                h = (h ^ b as u64).wrapping_mul(0x100000001b3);
            }
        }
        if let Ok(c) = r {
            h ^= c.events ^ (c.runs << 20) ^ (u64::from(c.steps) << 40);
        } else {
            h ^= 77;
        }
        if nth < 2000 {
            println!("{nth} {h:x}");
        }
        total = total.rotate_left(1) ^ h;
    }
    println!("total {total:x}");
}
