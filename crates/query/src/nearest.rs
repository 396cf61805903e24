//! Names that were mistyped, and what was probably meant.

/// The known name that takes the fewest slips of the keyboard to become `name`; `None` when even
/// that would be a guess: more than one slip in three characters.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = name.to_lowercase();
    let slips = |known: &str| {
        let known = known.to_lowercase();
        let slips_max = wanted.chars().count().max(known.chars().count()) / 3;
        let slips = strsim::osa_distance(&wanted, &known);
        (slips <= slips_max).then_some(slips)
    };
    let close = known.into_iter().filter_map(|known| Some((slips(known)?, known)));
    close.min().map(|(_, known)| known)
}

/// What an error ends in: a question where there is a near name, else nothing.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_forgiven_and_a_guess_is_not_made() {
        let columns = ["latency", "status", "test", "x", "ID"];
        let of = |name| nearest(name, columns);
        assert_eq!(of("latecy"), Some("latency"));
        assert_eq!(of("satus"), Some("status"));
        assert_eq!(of("tset"), Some("test"), "two letters changed places: one slip");
        assert_eq!(of("id"), Some("ID"));
        assert_eq!(of("y"), None);
        assert_eq!(of("duration"), None);
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn of_two_equally_near_the_first_by_name_is_taken() {
        assert_eq!(nearest("tesx", ["test", "tess"]), Some("tess"));
    }
}
