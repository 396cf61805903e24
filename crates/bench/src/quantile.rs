//! Quantiles of what was measured.

use std::time::Duration;

/// The value that a share `quantile` of `sorted` does not exceed (nearest rank); zero of nothing.
pub(crate) fn of_sorted(sorted: &[Duration], quantile: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank lies between 0 and the length"
    )]
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    let index = rank.saturating_sub(1).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

/// The median of rates; zero of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (None, _) => 0.0,
        (Some(value), 1) => *value,
        (Some(value), _) => f64::midpoint(values[middle - 1], *value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sorted: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(of_sorted(&sorted, 0.5), Duration::from_millis(100));
        assert_eq!(of_sorted(&sorted, 0.99), Duration::from_millis(198));
        assert_eq!(of_sorted(&sorted, 1.0), Duration::from_millis(200));
        assert_eq!(of_sorted(&sorted[..1], 0.5), Duration::from_millis(1));
        assert_eq!(of_sorted(&[], 0.5), Duration::ZERO);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "small integers are exact")]
    fn the_median_of_an_even_count_is_between_its_neighbours() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }
}
