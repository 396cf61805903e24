//! Percentiles by the sketch of the algebra: `percentile(x, 0.99)`, and weighted
//! `percentile(x, 0.99, weight)`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, ListBuilder,
};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
    TypeSignature, Volatility,
};
use datafusion::physical_plan::expressions::Literal;
use perflab_query::Sketch;

/// The aggregate function.
pub(crate) fn percentile() -> AggregateUDF {
    let unweighted = TypeSignature::Exact(vec![DataType::Float64; 2]);
    let weighted = TypeSignature::Exact(vec![DataType::Float64; 3]);
    AggregateUDF::from(Percentile {
        signature: Signature::one_of(vec![unweighted, weighted], Volatility::Immutable),
        // The engine's own one costs many times as much. Its third argument is a size, and a
        // weight that is the same for all rows changes nothing.
        aliases: vec!["p".to_owned(), "approx_percentile_cont".to_owned()],
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &'static str {
        "percentile"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(DataType::Float64, true);
        Ok(vec![Arc::new(Field::new_list(format!("{}[sketch]", args.name), item, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One(Sketches::new(&args)?)))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Sketches::new(&args)?))
    }
}

/// The sketches of groups.
#[derive(Debug)]
struct Sketches {
    part: f64,
    /// Whether the third argument is there. What else comes with the arguments is their order.
    is_weighted: bool,
    sketches: Vec<Sketch>,
    /// What they take.
    bytes: usize,
}

impl Sketches {
    fn new(args: &AccumulatorArgs<'_>) -> Result<Self> {
        let literal = args.exprs.get(1).and_then(|part| part.downcast_ref::<Literal>());
        let Some(ScalarValue::Float64(Some(part))) = literal.map(Literal::value) else {
            return plan_err!("the second argument of percentile is not a number from 0 to 1");
        };
        if !(0.0..=1.0).contains(part) {
            return plan_err!("percentile {part} is not from 0 to 1");
        }
        let is_descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        let part = if is_descending { 1.0 - part } else { *part };
        let is_weighted = args.exprs.len() > 2;
        Ok(Self { part, is_weighted, sketches: Vec::new(), bytes: 0 })
    }

    fn resize(&mut self, groups: usize) {
        let more = groups.saturating_sub(self.sketches.len());
        self.bytes += more * Sketch::default().held_bytes();
        self.sketches.resize(groups.max(self.sketches.len()), Sketch::default());
    }

    fn change(&mut self, group: usize, change: impl FnOnce(&mut Sketch)) {
        let sketch = &mut self.sketches[group];
        let before = sketch.held_bytes();
        change(sketch);
        self.bytes += sketch.held_bytes() - before;
    }

    fn emit(&mut self, emit_to: EmitTo) -> Vec<Sketch> {
        let sketches = emit_to.take_needed(&mut self.sketches);
        self.bytes -= sketches.iter().map(Sketch::held_bytes).sum::<usize>();
        sketches
    }
}

impl GroupsAccumulator for Sketches {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
    ) -> Result<()> {
        self.resize(groups_total);
        let numbers = values[0].as_primitive::<Float64Type>();
        let weights = self.is_weighted.then(|| values[2].as_primitive::<Float64Type>());
        let number = |array: &Float64Array, row| array.is_valid(row).then(|| array.value(row));
        for (row, &group) in groups.iter().enumerate() {
            let is_chosen = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            let value = number(numbers, row).filter(|value| is_chosen && !value.is_nan());
            let weight = weights.map_or(Some(1.0), |weights| number(weights, row));
            if let (Some(value), Some(weight)) = (value, weight.filter(|weight| *weight >= 0.0)) {
                self.change(group, |sketch| sketch.add(value, weight));
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_total: usize,
    ) -> Result<()> {
        self.resize(groups_total);
        let states = states[0].as_list::<i32>();
        for (row, &group) in groups.iter().enumerate() {
            let state = states.value(row);
            match Sketch::from_state(state.as_primitive::<Float64Type>().values()) {
                Some(other) => self.change(group, |sketch| sketch.merge(&other)),
                None => return exec_err!("the state of a percentile is no sketch"),
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let part = self.part;
        let quantiles = self.emit(emit_to).into_iter().map(|sketch| sketch.quantile(part));
        Ok(Arc::new(quantiles.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut states = ListBuilder::new(Float64Builder::new());
        for sketch in self.emit(emit_to) {
            states.values().append_slice(&sketch.to_state());
            states.append(true);
        }
        Ok(vec![Arc::new(states.finish())])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows: Vec<usize> = (0..values[0].len()).collect();
        let mut each = Self { sketches: Vec::new(), bytes: 0, ..*self };
        each.update_batch(values, &rows, filter, rows.len())?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.bytes
    }
}

/// The sketch of all rows: of a query without groups.
#[derive(Debug)]
struct One(Sketches);

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values, &vec![0; values[0].len()], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states, &vec![0; states[0].len()], 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.resize(1);
        ScalarValue::try_from_array(&self.0.evaluate(EmitTo::All)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.resize(1);
        let states = self.0.state(EmitTo::All)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn size(&self) -> usize {
        self.0.bytes
    }
}
