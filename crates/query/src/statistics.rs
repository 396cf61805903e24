//! Probabilities, by hand: the few that are needed, with their sources, against published tables.

/// Two-sided 95 % of the normal distribution.
pub(crate) const NORMAL_95: f64 = 1.959_963_984_540_054;
/// Series and fractions below end when a step changes less than this, or after so many steps.
const PRECISION: f64 = 1e-15;
const STEPS_MAX: u32 = 10_000;
/// Instead of zero, below a line.
const TINY: f64 = 1e-300;

/// The logarithm of the gamma function, for positive numbers: Lanczos, "A precision approximation
/// of the gamma function" (1964), with Godfrey's nine coefficients.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const FIRST: f64 = 0.999_999_999_999_809_9;
    const REST: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = (1_u8..).zip(REST).map(|(n, term)| term / (x + f64::from(n)));
    let sum = FIRST + terms.sum::<f64>();
    let t = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// A continued fraction b0 + a1/(b1 + a2/(b2 + …)) by Lentz's method, as Thompson and Barnett
/// (1986) changed it.
fn continued_fraction(b0: f64, term: impl Fn(f64) -> (f64, f64)) -> f64 {
    let nonzero = |x: f64| if x.abs() < TINY { TINY } else { x };
    let mut result = nonzero(b0);
    let (mut c, mut d) = (result, 0.0);
    for n in 1..STEPS_MAX {
        let (a, b) = term(f64::from(n));
        d = 1.0 / nonzero(b + a * d);
        c = nonzero(b + a / c);
        result *= c * d;
        if (c * d - 1.0).abs() < PRECISION {
            break;
        }
    }
    result
}

/// The upper part of the regularised incomplete gamma function, Q(a, x): Abramowitz and Stegun,
/// 6.5.29 (series) and 6.5.31 (fraction).
fn gamma_q(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x >= a + 1.0 {
        let fraction = continued_fraction(x + 1.0 - a, |n| (-n * (n - a), x + 2.0 * n + 1.0 - a));
        return front / fraction;
    }
    let (mut sum, mut term) = (1.0 / a, 1.0 / a);
    for n in 1..STEPS_MAX {
        term *= x / (a + f64::from(n));
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    1.0 - front * sum
}

/// The regularised incomplete beta function: NIST Digital Library of Mathematical Functions,
/// 8.17.22.
fn beta_i(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction is quick on this side; the other side is its mirror.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_i(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    let fraction = continued_fraction(1.0, |n| {
        let m = (n / 2.0).floor();
        let is_even = n % 2.0 == 0.0;
        let numerator = if is_even {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        (numerator, 1.0)
    });
    front / (a * fraction)
}

/// How likely a number of the standard normal distribution is at least so far from zero.
pub(crate) fn normal_p(z: f64) -> f64 {
    gamma_q(0.5, z * z / 2.0)
}

/// How likely a number of Student's distribution is at least so far from zero.
pub(crate) fn student_p(t: f64, freedom: f64) -> f64 {
    beta_i(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// How far from zero a number of Student's distribution is with a probability of 5 % or less.
pub(crate) fn student_95(freedom: f64) -> f64 {
    // With one degree of freedom it is 12.7, with fewer it grows fast; halved until it is exact.
    let (mut low, mut high) = (0.0_f64, 1e9_f64);
    while high - low > 1e-12 * high {
        let middle = low + (high - low) / 2.0;
        if student_p(middle, freedom) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// How likely a number of the chi-squared distribution is at least this.
pub(crate) fn chi_squared_p(x: f64, freedom: f64) -> f64 {
    gamma_q(freedom / 2.0, x / 2.0)
}

/// What each probability becomes when this many questions are asked at once: the share of false
/// findings among those that are at least as unlikely. Benjamini and Hochberg, "Controlling the
/// false discovery rate" (1995). The probabilities ascend.
#[expect(clippy::cast_precision_loss, reason = "findings are few")]
pub(crate) fn false_discovery(ascending: &[f64]) -> Vec<f64> {
    let count = ascending.len() as f64;
    let mut least = 1.0_f64;
    let adjusted = ascending.iter().enumerate().rev().map(|(rank, p)| {
        least = least.min(p * count / (rank + 1) as f64);
        least
    });
    let mut adjusted: Vec<f64> = adjusted.collect();
    adjusted.reverse();
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_close(found: f64, expected: f64, error: f64) -> bool {
        (found - expected).abs() <= error
    }

    /// Abramowitz and Stegun, "Handbook of Mathematical Functions", tables 26.1, 26.8 and 26.10.
    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (z, p) in [(0.0, 1.0), (1.0, 0.317_310_508), (NORMAL_95, 0.05), (3.0, 0.002_699_796)] {
            assert!(is_close(normal_p(z), p, 1e-9), "{z}");
        }
        for (x, freedom, p) in [
            (3.84146, 1.0, 0.05),
            (6.63490, 1.0, 0.01),
            (18.3070, 10.0, 0.05),
            (124.342, 100.0, 0.05),
        ] {
            assert!(is_close(chi_squared_p(x, freedom), p, 1e-6), "{x}");
        }
        for (freedom, t) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (5.0, 2.571),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
        ] {
            assert!(is_close(student_95(freedom), t, 5.1e-4), "{freedom}");
            assert!(is_close(student_p(student_95(freedom), freedom), 0.05, 1e-10), "{freedom}");
        }
    }

    /// The logarithms of factorials.
    #[test]
    fn gamma_is_the_factorial() {
        let mut factorial = 1.0_f64;
        for n in 1_u8..100 {
            assert!(is_close(ln_gamma(f64::from(n)), factorial.ln(), 1e-11), "{n}");
            factorial *= f64::from(n);
        }
    }

    /// The example of the paper: fifteen hypotheses, of which the first four stand at 5 %.
    #[test]
    fn false_discovery_is_that_of_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let adjusted = false_discovery(&p);
        assert_eq!(adjusted.iter().filter(|q| **q <= 0.05).count(), 4);
        assert!(is_close(adjusted[0], 0.0015, 1e-12) && is_close(adjusted[14], 1.0, 0.0));
        assert!(adjusted.is_sorted() && false_discovery(&[]).is_empty());
    }
}
