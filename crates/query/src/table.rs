//! The groups of an answer: which of them come first, and what is said of them.

use crate::algebra::{Question, Top};
use crate::limits::Budget;
use crate::prepare::Plan;
use crate::states::{Layout, States};
use crate::{Answer, AnswerRow, QueryError, Value};

/// How a group is written as one number: the numbers of its values, one per dimension.
#[derive(Debug)]
pub(crate) struct Strides {
    /// What the number of each dimension is multiplied by, and how many there are of it.
    dimensions: Vec<(u64, u64)>,
    /// How many groups are possible.
    pub(crate) possible: u64,
}

impl Strides {
    /// `None` when the possible groups can't be numbered.
    pub(crate) fn new(counts: impl Iterator<Item = usize>) -> Option<Self> {
        let (mut dimensions, mut possible) = (Vec::new(), 1_u64);
        for count in counts {
            dimensions.push((possible, count as u64));
            possible = possible.checked_mul(count as u64)?;
        }
        Some(Self { dimensions, possible })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.dimensions.iter().map(|(stride, _)| *stride)
    }

    /// The number of a group's value in each dimension.
    pub(crate) fn ids(&self, group: u64) -> impl Iterator<Item = u32> {
        let ids = self.dimensions.iter();
        ids.map(move |(stride, count)| u32::try_from(group / stride % count).unwrap_or(u32::MAX))
    }
}

/// Groups and what is known of them.
#[derive(Debug)]
pub(crate) struct Table {
    /// The number of each group.
    pub(crate) groups: Vec<u64>,
    /// Of the groups in this order, and last of the rest: groups that were left out already.
    pub(crate) states: Vec<States>,
    pub(crate) has_rest: bool,
}

impl Table {
    pub(crate) fn finish(
        self,
        plan: &Plan<'_>,
        layout: &Layout<'_>,
        strides: &Strides,
        budget: &Budget<'_>,
    ) -> Result<Answer, QueryError> {
        let question = plan.question;
        let shown: Vec<usize> = match question.top {
            None => (0..self.groups.len()).collect(),
            Some(top) => first(top, &ranks(top, question, &self.states, self.groups.len())),
        };
        budget.check_groups(shown.len())?;
        let row = |&place: &usize| AnswerRow {
            group: strides
                .ids(self.groups[place])
                .zip(&plan.values)
                .map(|(id, values)| values.get(id))
                .collect(),
            values: finished(question, &self.states, place),
        };
        let mut answer = Answer {
            rows: shown.iter().map(row).collect(),
            rows_scanned: plan.rows_scanned,
            rows_recalled: plan.rows_recalled,
            ..Answer::default()
        };
        let all = 0..=self.groups.len();
        if question.with_other && (self.has_rest || shown.len() < self.groups.len()) {
            let mut is_shown = vec![false; self.groups.len() + 1];
            shown.iter().for_each(|&place| is_shown[place] = true);
            let others = all.clone().filter(|&place| !is_shown[place]);
            answer.other = Some(self.together(question, layout, &others));
        }
        if question.with_total {
            answer.total = Some(self.together(question, layout, &all));
        }
        Ok(answer)
    }

    /// Several groups as one. Their values are null: they have none in common.
    fn together(
        &self,
        question: &Question,
        layout: &Layout<'_>,
        places: &(impl Iterator<Item = usize> + Clone),
    ) -> AnswerRow {
        let mut together = layout.states(1);
        for (one, states) in together.iter_mut().zip(&self.states) {
            one.merge(states, places.clone().map(|place| (place, 0)));
        }
        let group = vec![Value::Null; question.group_by.len()];
        AnswerRow { group, values: finished(question, &together, 0) }
    }
}

fn finished(question: &Question, states: &[States], place: usize) -> Vec<Option<f64>> {
    let states = states.iter().zip(&question.aggregates);
    states.map(|(states, aggregate)| states.finish(aggregate, place)).collect()
}

/// What so many groups are ordered by.
pub(crate) fn ranks(top: Top, question: &Question, states: &[States], groups: usize) -> Vec<f64> {
    states[top.by].ranks(&question.aggregates[top.by], top.order, groups)
}

/// The places of the first groups, in order.
pub(crate) fn first(top: Top, ranks: &[f64]) -> Vec<usize> {
    let mut groups: Vec<(f64, usize)> = ranks.iter().copied().zip(0..).collect();
    let compare = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0);
    if top.count < groups.len() {
        groups.select_nth_unstable_by(top.count, compare);
        groups.truncate(top.count);
    }
    groups.sort_by(compare);
    groups.into_iter().map(|(_, place)| place).collect()
}
