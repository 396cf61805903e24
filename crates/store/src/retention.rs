//! Retention: what the categories' settings say, applied to the log.

use std::io;

use perflab_log::{Keep, Retained};
use perflab_model::CategoryName;

use crate::catalog::CategorySettings;
use crate::home::Home;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Home {
    /// Removes what the categories' settings no longer ask for, except what no segment holds yet.
    pub fn retain(&self) -> io::Result<Retained> {
        let keep = |category: &str| match CategoryName::new(category) {
            Ok(category) => keep(&self.category_settings(&category)),
            // Not written by us; not ours to remove.
            Err(_) => Keep::default(),
        };
        self.log().retain(self.clock().now().as_i64(), &keep, self.keeper().held_from())
    }
}

fn keep(settings: &CategorySettings) -> Keep {
    let age_ns = settings
        .retain_seconds
        .map(|seconds| i64::try_from(seconds.saturating_mul(NANOS_PER_SECOND)).unwrap_or(i64::MAX));
    Keep { age_ns, bytes: settings.max_bytes }
}
