//! Approximate quantiles of a stream of values in bounded memory.
//!
//! Samples are kept sorted. Each sample represents itself and some discarded values below it; the number it may
//! represent shrinks towards the top (Cormode, Korn, Muthukrishnan and Srivastava, "Effective Computation of Biased
//! Quantiles over Data Streams"). All error bounds of Prometheus' Go client follow one rule: a tenth of the share of
//! values above the quantile. Go's implementation tracks each target separately and violates that bound for values in
//! descending order. The number of values above a value never decreases, so here the bound holds for every order.

/// The quantiles of a summary, each with the maximum error of its rank.
pub(super) const TARGETS: [(f64, f64); 3] = [(0.5, 0.05), (0.9, 0.01), (0.99, 0.001)];

/// The error of a rank, as a share of the values above it.
const ERROR: f64 = 0.1;
/// How many values one sample may represent, as a share of the values above it. The result lies within half of that
/// below and above the wanted rank, but there are more values above the lower end: hence 0.2 / 1.1, rounded down,
/// instead of 0.2.
const WIDTH: f64 = 0.18;

/// Maximum number of samples. A sequence designed to defeat the compression reaches it after some hundred thousand
/// values, and then loses accuracy instead of using more memory.
const MAX_SAMPLES: usize = 5000;

/// How many values are buffered before they are merged. Up to this number of values the quantiles are exact.
const BUFFERED: usize = 500;

/// A value and the bounds of its rank.
#[derive(Clone, Copy, Debug)]
struct Sample {
    value: f64,
    /// How many values it represents, including itself.
    width: u64,
    /// By how much its rank may be higher than the sum of the widths.
    uncertainty: u64,
}

#[derive(Debug, Default)]
pub(super) struct QuantileStream {
    buffer: Vec<f64>,
    /// In ascending order.
    samples: Vec<Sample>,
    /// How many values the samples represent.
    count: u64,
}

impl QuantileStream {
    pub(super) fn insert(&mut self, value: f64) {
        self.buffer.push(value);
        if self.buffer.len() >= BUFFERED {
            self.merge();
        }
    }

    /// Removes all values but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.samples.clear();
        self.count = 0;
    }

    /// The value at this share of the ranks; `None` if there are no values.
    pub(super) fn quantile(&mut self, share: f64) -> Option<f64> {
        if self.samples.is_empty() {
            self.buffer.sort_by(f64::total_cmp);
            let rank = as_count((share * as_float(self.buffer.len() as u64)).ceil());
            let place = usize::try_from(rank.saturating_sub(1)).unwrap_or(usize::MAX);
            return self.buffer.get(place).or(self.buffer.last()).copied();
        }
        self.merge();
        let wanted = (share * as_float(self.count)).ceil();
        let limit = wanted + (as_float(self.count) - wanted) * ERROR;
        let mut below = 0;
        let mut last = None;
        for sample in &self.samples {
            if last.is_some() && as_float(below + sample.width + sample.uncertainty) > limit {
                break;
            }
            below += sample.width;
            last = Some(sample.value);
        }
        last
    }

    /// Merges the buffer into the samples and compresses them.
    fn merge(&mut self) {
        self.buffer.sort_by(f64::total_cmp);
        let mut merged = Vec::with_capacity(self.samples.len() + self.buffer.len());
        let mut old = std::mem::take(&mut self.samples).into_iter().peekable();
        let mut below_all = true;
        for value in self.buffer.drain(..) {
            while let Some(sample) = old.next_if(|sample| sample.value <= value) {
                merged.push(sample);
                below_all = false;
            }
            // Its rank may be any of those that the next sample represents. The rank of a new maximum or minimum is
            // known.
            let next = if below_all { None } else { old.peek() };
            let uncertainty = next.map_or(0, |next| next.width + next.uncertainty - 1);
            merged.push(Sample { value, width: 1, uncertainty });
            self.count += 1;
        }
        merged.extend(old);
        let mut width = WIDTH;
        while {
            merged = compressed(merged, width);
            merged.len() > MAX_SAMPLES && width < 1.0
        } {
            width *= 2.0;
        }
        merged.shrink_to_fit();
        self.samples = merged;
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.samples.len() + self.buffer.len()
    }
}

/// Merges samples into the next larger one. The smallest stays, so that a new minimum is recognized.
fn compressed(samples: Vec<Sample>, width: f64) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    let mut from_here_up = 0;
    // Descending, because a sample represents values below it.
    for (place, sample) in samples.into_iter().enumerate().rev() {
        from_here_up += sample.width;
        match kept.last_mut() {
            Some(above)
                if place > 0
                    && as_float(sample.width + above.width + above.uncertainty)
                        <= width * as_float(from_here_up) =>
            {
                above.width += sample.width;
            }
            _ => kept.push(sample),
        }
    }
    kept.reverse();
    kept
}

#[expect(clippy::cast_precision_loss, reason = "no count reaches 2^53")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn as_count(float: f64) -> u64 {
    float as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible pseudo-random numbers.
    fn pseudo_random(count: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            as_float(state >> 11) / as_float(1 << 53)
        };
        (0..count).map(|_| next()).collect()
    }

    /// T2: checks that the rank of each quantile is within Go's errors.
    fn assert_accurate(values: &[f64]) {
        let mut stream = QuantileStream::default();
        values.iter().for_each(|value| stream.insert(*value));
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = as_float(sorted.len() as u64);
        for (share, error) in TARGETS {
            let answer = stream.quantile(share).unwrap();
            let least = as_float(sorted.partition_point(|value| *value < answer) as u64);
            let most = as_float(sorted.partition_point(|value| *value <= answer) as u64);
            let low = ((share - error) * count).floor() - 1.0;
            let high = ((share + error) * count).ceil() + 1.0;
            assert!(
                most >= low && least <= high,
                "{share}: {least}..{most} is not in {low}..{high} of {count}"
            );
        }
    }

    #[test]
    fn t2_quantiles_are_within_the_errors_of_go() {
        for count in [1, 2, 10, 499, 500, 501, 1_000, 5_000, 100_000] {
            let values = pseudo_random(count);
            assert_accurate(&values);
            assert_accurate(&values.iter().map(|value| (value * 20.0).exp()).collect::<Vec<_>>());
            assert_accurate(&values.iter().map(|value| (value * 10.0).floor()).collect::<Vec<_>>());
            let mut ascending = values;
            ascending.sort_by(f64::total_cmp);
            assert_accurate(&ascending);
            ascending.reverse();
            assert_accurate(&ascending);
            ascending.insert(0, -1.0);
            assert_accurate(&ascending);
        }
    }

    #[test]
    fn t2_quantiles_of_few_values_are_exact() {
        let mut stream = QuantileStream::default();
        assert_eq!(stream.quantile(0.5), None);
        (1..=10).rev().for_each(|value| stream.insert(f64::from(value)));
        assert_eq!(stream.quantile(0.5), Some(5.0));
        assert_eq!(stream.quantile(0.9), Some(9.0));
        assert_eq!(stream.quantile(0.99), Some(10.0));
        stream.clear();
        assert_eq!(stream.quantile(0.5), None);
    }

    #[test]
    fn t2_memory_is_bounded_for_every_order_of_values() {
        let numbers = 0..1_000_000_u32;
        let ascending: Vec<f64> = numbers.clone().map(f64::from).collect();
        let descending: Vec<f64> = numbers.rev().map(f64::from).collect();
        // The worst case is a minimum followed by descending values above it.
        let hostile: Vec<f64> = [-1.0].into_iter().chain(descending.iter().copied()).collect();
        for (values, most) in [(ascending, 1000), (descending, 1000), (hostile, MAX_SAMPLES)] {
            let mut stream = QuantileStream::default();
            values.iter().for_each(|value| stream.insert(*value));
            assert!(stream.held() <= most + BUFFERED, "{} samples are held", stream.held());
        }
    }
}
