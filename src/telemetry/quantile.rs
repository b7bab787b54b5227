//! Quantiles of many values in little memory.
//!
//! Values are kept in order, each standing for itself and for some of the dropped ones below it. How many it may stand
//! for shrinks towards the top (Cormode, Korn, Muthukrishnan and Srivastava, "Effective Computation of Biased Quantiles
//! over Data Streams"), because all errors that Prometheus' client for Go promises are one error: a tenth of the share
//! of values above the quantile. Go's own bookkeeping, made for each target by itself, breaks that promise when values
//! arrive in falling order; what lies above a value never becomes less, so here it holds for every order.

/// The quantiles of a summary, each with the error its rank may have.
pub(super) const TARGETS: [(f64, f64); 3] = [(0.5, 0.05), (0.9, 0.01), (0.99, 0.001)];

/// The error, as a share of what lies above.
const ERROR: f64 = 0.1;
/// How many values one sample may stand for, as a share of what lies above. The answer lies within half of it below
/// and above the wanted rank, but what lies above is more at the lower end: hence 0.2 / 1.1, rounded down, and not 0.2.
const WIDTH: f64 = 0.18;

/// The most samples that are kept. An order of values that was made to defeat the above gets there after some
/// hundred thousand of them, and then costs exactness instead of memory.
const MOST: usize = 5000;

/// So many values are gathered before they are put in order. Up to here the answers are exact.
const GATHERED: usize = 500;

/// A value, and what is known of its rank.
#[derive(Clone, Copy, Debug)]
struct Sample {
    value: f64,
    /// How many values it stands for, itself included.
    width: u64,
    /// By how much its rank may be higher than the widths say.
    doubt: u64,
}

/// A stream of values.
#[derive(Debug, Default)]
pub(super) struct Stream {
    gathered: Vec<f64>,
    /// In rising order.
    samples: Vec<Sample>,
    /// How many values the samples stand for.
    count: u64,
}

impl Stream {
    pub(super) fn insert(&mut self, value: f64) {
        self.gathered.push(value);
        if self.gathered.len() >= GATHERED {
            self.settle();
        }
    }

    /// Forgets everything, and keeps the memory for what is to come.
    pub(super) fn clear(&mut self) {
        self.gathered.clear();
        self.samples.clear();
        self.count = 0;
    }

    /// The value whose rank is this share of all; none if there are no values.
    pub(super) fn quantile(&mut self, share: f64) -> Option<f64> {
        if self.samples.is_empty() {
            self.gathered.sort_by(f64::total_cmp);
            let rank = as_count((share * as_float(self.gathered.len() as u64)).ceil());
            let place = usize::try_from(rank.saturating_sub(1)).unwrap_or(usize::MAX);
            return self.gathered.get(place).or(self.gathered.last()).copied();
        }
        self.settle();
        let wanted = (share * as_float(self.count)).ceil();
        let limit = wanted + (as_float(self.count) - wanted) * ERROR;
        let mut below = 0;
        let mut last = None;
        for sample in &self.samples {
            if last.is_some() && as_float(below + sample.width + sample.doubt) > limit {
                break;
            }
            below += sample.width;
            last = Some(sample.value);
        }
        last
    }

    /// Puts what was gathered among the samples, and lets samples that are not needed be stood for by others.
    fn settle(&mut self) {
        self.gathered.sort_by(f64::total_cmp);
        let mut merged = Vec::with_capacity(self.samples.len() + self.gathered.len());
        let mut old = std::mem::take(&mut self.samples).into_iter().peekable();
        let mut below_all = true;
        for value in self.gathered.drain(..) {
            while let Some(sample) = old.next_if(|sample| sample.value <= value) {
                merged.push(sample);
                below_all = false;
            }
            // It may lie anywhere among what the next one stands for; a new largest or smallest is where it is.
            let next = if below_all { None } else { old.peek() };
            let doubt = next.map_or(0, |next| next.width + next.doubt - 1);
            merged.push(Sample { value, width: 1, doubt });
            self.count += 1;
        }
        merged.extend(old);
        let mut width = WIDTH;
        while {
            merged = compressed(merged, width);
            merged.len() > MOST && width < 1.0
        } {
            width *= 2.0;
        }
        merged.shrink_to_fit();
        self.samples = merged;
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.samples.len() + self.gathered.len()
    }
}

/// Lets samples be stood for by the next larger one. The smallest stays, so that what is smaller still is known to be.
fn compressed(samples: Vec<Sample>, width: f64) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    let mut from_here_up = 0;
    // From the largest down, because a sample stands for those below it.
    for (place, sample) in samples.into_iter().enumerate().rev() {
        from_here_up += sample.width;
        match kept.last_mut() {
            Some(above)
                if place > 0
                    && as_float(sample.width + above.width + above.doubt)
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

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is never reached")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast stops at 0 and at the largest"
)]
fn as_count(float: f64) -> u64 {
    float as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance and are the same every time.
    fn chance(count: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            as_float(state >> 11) / as_float(1 << 53)
        };
        (0..count).map(|_| next()).collect()
    }

    /// T2: the answer's rank is as near to the wanted one as Go's targets promise.
    fn is_near(values: &[f64]) {
        let mut stream = Stream::default();
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
            let values = chance(count);
            is_near(&values);
            is_near(&values.iter().map(|value| (value * 20.0).exp()).collect::<Vec<_>>());
            is_near(&values.iter().map(|value| (value * 10.0).floor()).collect::<Vec<_>>());
            let mut rising = values;
            rising.sort_by(f64::total_cmp);
            is_near(&rising);
            rising.reverse();
            is_near(&rising);
            rising.insert(0, -1.0);
            is_near(&rising);
        }
    }

    #[test]
    fn t2_few_values_are_answered_exactly() {
        let mut stream = Stream::default();
        assert_eq!(stream.quantile(0.5), None);
        (1..=10).rev().for_each(|value| stream.insert(f64::from(value)));
        assert_eq!(stream.quantile(0.5), Some(5.0));
        assert_eq!(stream.quantile(0.9), Some(9.0));
        assert_eq!(stream.quantile(0.99), Some(10.0));
        stream.clear();
        assert_eq!(stream.quantile(0.5), None);
    }

    #[test]
    fn t2_no_order_of_values_costs_more_than_a_little_memory() {
        let numbers = 0..1_000_000_u32;
        let rising: Vec<f64> = numbers.clone().map(f64::from).collect();
        let falling: Vec<f64> = numbers.rev().map(f64::from).collect();
        // A smallest value, and then ever smaller ones above it, is the worst there is.
        let hostile: Vec<f64> = [-1.0].into_iter().chain(falling.iter().copied()).collect();
        for (values, most) in [(rising, 1000), (falling, 1000), (hostile, MOST)] {
            let mut stream = Stream::default();
            values.iter().for_each(|value| stream.insert(*value));
            assert!(stream.held() <= most + GATHERED, "{} are held", stream.held());
        }
    }
}
