//! The bytes of a row group. They are written here and not by the library, which hashes every cell of a
//! column: here only what differs from the cell above it.

use std::iter::repeat_n;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column::{Column, Presence, Texts};
use super::dictionary::{Dictionary, Value};
use super::hybrid;
use super::numbers::to_bytes;

/// Bytes after which a page of texts ends.
const PAGE_BYTES: usize = 1 << 20;

/// How Parquet stores a row group: column after column.
pub(crate) struct Encoded {
    pub(super) bytes: Bytes,
    /// Of each column where it is in these bytes.
    pub(super) chunks: Vec<ColumnCloseResult>,
}

/// Encodes columns that are all as long, one after the other; each has its description.
pub(super) fn encode(
    columns: impl Iterator<Item = Column>,
    descriptions: &[ColumnDescPtr],
) -> Result<Encoded, ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut compressor = Compressor { encoder: snap::raw::Encoder::new(), room: Vec::new() };
    let mut chunks = Vec::with_capacity(descriptions.len());
    for (column, description) in columns.zip(descriptions) {
        let mut chunk = Chunk::begin(&mut sink, &mut compressor);
        let statistics = match &column {
            Column::Int32(values) => {
                chunk.counts(values, u32::to_le_bytes)?;
                let range = least_and_most(values).map(|count| count.map(|count| count as i32));
                Some(Statistics::int32(range[0], range[1], None, Some(0), false))
            }
            Column::Int64(values) => {
                chunk.counts(values, u64::to_le_bytes)?;
                let range = least_and_most(values).map(|count| count.map(|count| count as i64));
                Some(Statistics::int64(range[0], range[1], None, Some(0), false))
            }
            Column::Text(presence, texts) => {
                chunk.texts(presence, texts)?;
                None
            }
            // Measured values hardly repeat, so a dictionary would not help.
            Column::Double(presence, values) => {
                chunk.plain(Rows::Some(presence), to_bytes(values, f64::to_le_bytes))?;
                None
            }
            Column::Float(presence, values) => {
                chunk.plain(Rows::Some(presence), to_bytes(values, f32::to_le_bytes))?;
                None
            }
        };
        chunks.push(chunk.close(description, statistics)?);
    }
    Ok(Encoded { bytes: sink.into_inner()?.into(), chunks })
}

fn least_and_most<T: Ord + Copy>(values: &[T]) -> [Option<T>; 2] {
    let Some((first, rest)) = values.split_first() else { return [None; 2] };
    let widen = |[least, most]: [T; 2], value: &T| [least.min(*value), most.max(*value)];
    rest.iter().fold([*first; 2], widen).map(Some)
}

struct Compressor {
    encoder: snap::raw::Encoder,
    /// Room for the largest page so far, as if nothing of it could be left out.
    room: Vec<u8>,
}

impl Compressor {
    fn compress(&mut self, bytes: &[u8]) -> Result<Bytes, ParquetError> {
        let most = snap::raw::max_compress_len(bytes.len());
        self.room.resize(most.max(self.room.len()), 0);
        let compressed = self.encoder.compress(bytes, &mut self.room);
        let external = |error| ParquetError::External(Box::new(error));
        compressed.map(|length| Bytes::copy_from_slice(&self.room[..length])).map_err(external)
    }
}

/// The rows of a page: all have a value, or some.
#[derive(Clone, Copy)]
enum Rows<'a> {
    All(usize),
    Some(&'a Presence),
}

impl Rows<'_> {
    fn count(self) -> usize {
        match self {
            Self::All(rows) => rows,
            Self::Some(presence) => presence.rows(),
        }
    }
}

/// A column of a row group that is being written.
struct Chunk<'a> {
    pages: SerializedPageWriter<'a, Vec<u8>>,
    compressor: &'a mut Compressor,
    /// Where the dictionary begins, if there is one, and the first page of rows.
    dictionary: Option<u64>,
    data: Option<u64>,
    /// What all pages take with their headers.
    compressed: usize,
    uncompressed: usize,
    rows: usize,
}

impl<'a> Chunk<'a> {
    fn begin(sink: &'a mut TrackedWrite<Vec<u8>>, compressor: &'a mut Compressor) -> Self {
        Self {
            pages: SerializedPageWriter::new(sink),
            compressor,
            dictionary: None,
            data: None,
            compressed: 0,
            uncompressed: 0,
            rows: 0,
        }
    }

    fn counts<T: Value, const N: usize>(
        &mut self,
        values: &[T],
        of_one: impl Fn(T) -> [u8; N],
    ) -> Result<(), ParquetError> {
        let rows = Rows::All(values.len());
        match Dictionary::of(values.iter().map(|value| (*value, 1))) {
            Some(dictionary) => self.with_dictionary(rows, dictionary),
            None => self.plain(rows, to_bytes(values, of_one)),
        }
    }

    fn texts(&mut self, presence: &Presence, texts: &Texts) -> Result<(), ParquetError> {
        if let Some(dictionary) = Dictionary::of(texts.runs()) {
            return self.with_dictionary(Rows::Some(presence), dictionary);
        }
        let texts = texts.runs().flat_map(|(text, times)| repeat_n(text, times as usize));
        let mut texts = texts.peekable();
        let (mut of_page, mut bytes) = (Presence::default(), Vec::new());
        for row in 0..presence.rows() {
            let text = texts.next_if(|_| presence.has(row));
            of_page.extend(text.is_some(), 1);
            if let Some(text) = text {
                text.write(&mut bytes);
            }
            if bytes.len() >= PAGE_BYTES {
                let (of_page, bytes) = (std::mem::take(&mut of_page), std::mem::take(&mut bytes));
                self.plain(Rows::Some(&of_page), bytes)?;
            }
        }
        match of_page.rows() {
            0 => Ok(()),
            _ => self.plain(Rows::Some(&of_page), bytes),
        }
    }

    fn with_dictionary(&mut self, rows: Rows<'_>, own: Dictionary) -> Result<(), ParquetError> {
        let page = Page::DictionaryPage {
            buf: self.compressor.compress(&own.values)?,
            num_values: own.count,
            encoding: Encoding::PLAIN_DICTIONARY,
            is_sorted: false,
        };
        self.dictionary = Some(self.page(page, own.values.len())?);
        self.rows(rows, own.places, Encoding::PLAIN_DICTIONARY)
    }

    /// A page of values as they are.
    fn plain(&mut self, rows: Rows<'_>, values: Vec<u8>) -> Result<(), ParquetError> {
        self.rows(rows, values, Encoding::PLAIN)
    }

    fn rows(
        &mut self,
        rows: Rows<'_>,
        values: Vec<u8>,
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        let content = match rows {
            Rows::All(_) => values,
            Rows::Some(presence) => with_levels(presence, &values),
        };
        let page = Page::DataPage {
            buf: self.compressor.compress(&content)?,
            num_values: rows.count() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let at = self.page(page, content.len())?;
        self.data.get_or_insert(at);
        self.rows += rows.count();
        Ok(())
    }

    /// Returns where it begins.
    fn page(&mut self, page: Page, uncompressed: usize) -> Result<u64, ParquetError> {
        let written = self.pages.write_page(CompressedPage::new(page, uncompressed))?;
        self.compressed += written.compressed_size;
        self.uncompressed += written.uncompressed_size;
        Ok(written.offset)
    }

    fn close(
        self,
        description: &ColumnDescPtr,
        statistics: Option<Statistics>,
    ) -> Result<ColumnCloseResult, ParquetError> {
        let encodings = match self.dictionary {
            Some(_) => [Encoding::RLE, Encoding::PLAIN_DICTIONARY],
            None => [Encoding::RLE, Encoding::PLAIN],
        };
        let mut metadata = ColumnChunkMetaData::builder(ColumnDescPtr::clone(description))
            .set_compression(Compression::SNAPPY)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(self.compressed as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(self.data.unwrap_or(0) as i64)
            .set_dictionary_page_offset(self.dictionary.map(|at| at as i64));
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        Ok(ColumnCloseResult {
            bytes_written: self.compressed as u64,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }
}

/// Values behind the definition levels of their rows: 1 for a row that has one.
fn with_levels(presence: &Presence, values: &[u8]) -> Vec<u8> {
    let mut page = hybrid::bits(presence.words(), presence.rows(), vec![0; 4]);
    let length = page.len() as u32 - 4;
    page[..4].copy_from_slice(&length.to_le_bytes());
    page.extend(values);
    page
}
