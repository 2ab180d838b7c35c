//! Tables that other libraries take over without a copy, by the Arrow PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyIterator, PyList, PyString};
use sojourn_core::SpecError;

use crate::errors;

/// A table in Arrow's memory. pandas, Polars, pyarrow and DuckDB take it as it is:
/// `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`.
#[pyclass(frozen, module = "sojourn")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    fn index(&self, name: &str) -> PyResult<usize> {
        self.schema.index_of(name).map_err(|_| {
            let names = || self.schema.fields().iter().map(|field| &field.name()[..]);
            let error = SpecError::new(format!("no column is named '{name}'"));
            let error = error.near(name, names());
            // A list of several hundred would hide the message.
            let error = match self.schema.fields().len() {
                0..=20 => error.allow(names()),
                _ => error.allow(["what `columns` lists"]),
            };
            PyKeyError::new_err(error.to_string())
        })
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| &field.name()[..]).collect()
    }

    /// A column as a list, with None where there is no value.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.index(name)?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            append(&list, batch.column(index))?;
        }
        Ok(list)
    }

    /// A column of numbers as bytes of 64-bit floats of this machine, not-a-number where there is no
    /// value: `numpy.frombuffer(table.numbers("t_s"))`.
    fn numbers<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let index = self.index(name)?;
        let mut bytes = Vec::with_capacity(self.rows() * 8);
        for batch in &self.batches {
            let numbers = numbers(batch.column(index)).ok_or_else(|| {
                errors::Error::new_err(format!("column '{name}' holds texts, not numbers"))
            })?;
            bytes.extend(numbers.into_iter().flat_map(f64::to_ne_bytes));
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// All columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.columns() {
            dict.set_item(name, self.__getitem__(py, name)?)?;
        }
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Whether there is a column of this name.
    fn __contains__(&self, name: &str) -> bool {
        self.schema.column_with_name(name).is_some()
    }

    /// The names of the columns, as those of a dict.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.columns())?.try_iter()
    }

    fn __repr__(&self) -> String {
        let columns = self.columns();
        let shown: Vec<&str> = columns.iter().take(12).copied().collect();
        let more = match columns.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (rows, count) = (self.rows(), columns.len());
        format!("<sojourn.Table of {rows} rows, {count} columns: {}{more}>", shown.join(", "))
    }

    /// The table as an Arrow stream. Another schema can't be asked for; a library that wants one
    /// casts what it gets, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        // A batch is a list of pointers to its columns.
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names and types of the columns, in Arrow's form.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema)
            .map_err(|error| errors::Error::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

fn append(list: &Bound<'_, PyList>, array: &dyn Array) -> PyResult<()> {
    let py = list.py();
    match array.data_type() {
        DataType::UInt32 => {
            array.as_primitive::<UInt32Type>().iter().try_for_each(|value| list.append(value))
        }
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().iter().try_for_each(|value| list.append(value))
        }
        DataType::Utf8View => array
            .as_string_view()
            .iter()
            .try_for_each(|text| list.append(text.map(|text| PyString::new(py, text)))),
        _ => numbers(array)
            .into_iter()
            .flatten()
            .try_for_each(|value| list.append(Some(value).filter(|value| !value.is_nan()))),
    }
}

/// `None` if they are no numbers.
fn numbers(array: &dyn Array) -> Option<Vec<f64>> {
    let missing = f64::NAN;
    Some(match array.data_type() {
        DataType::UInt32 => {
            let array = array.as_primitive::<UInt32Type>();
            array.iter().map(|value| value.map_or(missing, f64::from)).collect()
        }
        DataType::UInt64 => {
            let array = array.as_primitive::<UInt64Type>();
            array.iter().map(|value| value.map_or(missing, |value| value as f64)).collect()
        }
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            array.iter().map(|value| value.map_or(missing, f64::from)).collect()
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            array.iter().map(|value| value.unwrap_or(missing)).collect()
        }
        _ => return None,
    })
}
