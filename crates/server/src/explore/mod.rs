//! Asking about rows: queries, SQL, datasets, values, links.
//!
//! A query is work for many cores and much memory, so only [`ServerLimits::queries_max`] run at
//! once, each on threads of its own that spread over the cores; the others wait.
//!
//! [`ServerLimits::queries_max`]: crate::ServerLimits::queries_max

mod answer;
mod arrays;
mod datasets;
mod export;
mod form;
mod links;
mod page;
mod rows;
mod run;
mod scuba;
mod sql;
mod values;

pub(crate) use answer::cell_schema;

use crate::endpoint::Endpoint;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = Vec::new();
    all.extend(run::endpoints());
    all.extend(export::endpoints());
    all.extend(sql::endpoints());
    all.extend(datasets::endpoints());
    all.extend(values::endpoints());
    all.extend(links::endpoints());
    all.extend(scuba::endpoints());
    all.extend(page::endpoints());
    all
}
