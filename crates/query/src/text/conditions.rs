//! Several conditions in one text: `status=failed && job=nn || latency>10`.

use super::list::split_by;
use super::{TextError, parse_condition};
use crate::document::{DocumentError, FILTERS_MAX, Filter, at_most};

/// Between conditions of which one is enough,
const OR: &str = "||";
/// and between those that must all hold, which belong together more closely.
const AND: &str = "&&";

/// Reads conditions as an OR of ANDs.
pub fn parse_conditions(text: &str) -> Result<Vec<Vec<Filter>>, TextError> {
    let all_of = |text| split_by(text, AND).into_iter().map(parse_condition).collect();
    split_by(text, OR).into_iter().map(all_of).collect()
}

/// One OR of ANDs for several that must all hold. Every choice of one alternative of each is an
/// alternative of the whole, so that a few texts can make very many.
pub fn all_of(several: &[Vec<Vec<Filter>>]) -> Result<Vec<Vec<Filter>>, DocumentError> {
    let mut several = several.iter().filter(|any_of| !any_of.is_empty());
    let Some(first) = several.next() else { return Ok(Vec::new()) };
    let conditions = |any_of: &[Vec<Filter>]| any_of.iter().map(Vec::len).sum::<usize>();
    several.try_fold(first.clone(), |sofar, any_of| {
        let count = sofar.len() * conditions(any_of) + any_of.len() * conditions(&sofar);
        at_most("conditions", count, FILTERS_MAX)?;
        let joined = |one: &Vec<Filter>| {
            let joined = any_of.iter().map(|other| [&one[..], other].concat());
            joined.collect::<Vec<_>>()
        };
        Ok(sofar.iter().flat_map(joined).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(any_of: &[Vec<Filter>]) -> Vec<String> {
        let name = |filter: &Filter| format!("{}{}{:?}", filter.column, filter.op, filter.values);
        any_of.iter().map(|all| all.iter().map(name).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn and_binds_more_closely_than_or() {
        let found = parse_conditions("a=1 && b~x|y || c in 2,3||d is null").unwrap();
        assert_eq!(names(&found), [r#"aeq["1"] bregex["x|y"]"#, r#"ceq["2", "3"]"#, "dnull[]"]);
        assert_eq!(names(&parse_conditions(r#"a="x || y""#).unwrap()), [r#"aeq["x || y"]"#]);
    }

    #[test]
    fn a_condition_that_is_missing_is_missed() {
        for text in ["", "a=1 ||", "&& a=1", "a=1 && && b=2"] {
            let error = parse_conditions(text).unwrap_err().to_string();
            assert!(error.contains("a column belongs here"), "{text}: {error}");
        }
    }

    #[test]
    fn what_must_all_hold_is_multiplied_out_up_to_a_limit() {
        let of = |text: &str| parse_conditions(text).unwrap();
        let all = all_of(&[of("a=1 || a=2"), of("b=3"), Vec::new(), of("c=4 || c=5")]).unwrap();
        assert_eq!(all.len(), 4);
        assert_eq!(names(&all)[1], r#"aeq["1"] beq["3"] ceq["5"]"#);
        assert_eq!(all_of(&[]).unwrap(), Vec::<Vec<Filter>>::new());
        let many = vec![of("a=1 || a=2"); 64];
        assert!(all_of(&many).unwrap_err().to_string().contains("the limit"));
    }
}
