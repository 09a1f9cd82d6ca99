//! The built-in geometric types (PostgreSQL, "Geometric Types"), as JSON and as GeoJSON.

use bytes::BytesMut;

use super::token::parse;
use crate::append::number;
use crate::binary_reader::BinaryReader;
use crate::error::{MalformedValue, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeometricType {
    Point,
    Line,
    Segment,
    Box,
    Path,
    Polygon,
    Circle,
}

/// The numbers of a value, read from either wire format.
struct Numbers<'a> {
    source: NumberSource<'a>,
    /// Whether a path is open; not used for other types.
    open: bool,
    /// The number of points of a path or polygon; not used for other types.
    points: usize,
}

enum NumberSource<'a> {
    Binary(BinaryReader<'a>),
    Text(std::vec::IntoIter<f64>),
}

impl Numbers<'_> {
    fn next(&mut self) -> Result<f64> {
        match &mut self.source {
            NumberSource::Binary(reader) => reader.f64(),
            NumberSource::Text(numbers) => numbers.next().ok_or(MalformedValue),
        }
    }

    fn end(self) -> Result<()> {
        match self.source {
            NumberSource::Binary(reader) => reader.end(),
            NumberSource::Text(mut numbers) => {
                numbers.next().map_or(Ok(()), |_| Err(MalformedValue))
            }
        }
    }
}

impl GeometricType {
    /// Appends the JSON of a value in the binary format, which consists of 64-bit floats. In a path
    /// or polygon, the number of points precedes the points. In a path, the number is preceded by a
    /// byte that is not 0 if the path is closed.
    pub(super) fn binary(self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        let mut numbers = self.read_binary(raw)?;
        self.json(&mut numbers, out)?;
        numbers.end()
    }

    /// Appends the JSON of a value in the text format.
    pub(super) fn text(self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        let mut numbers = Self::read_text(raw)?;
        self.json(&mut numbers, out)?;
        numbers.end()
    }

    /// Appends the GeoJSON geometry of a value. Returns whether the value has a GeoJSON geometry.
    /// Lines, circles, and shapes with a coordinate that is not finite have none.
    pub(super) fn geojson(self, raw: &[u8], binary: bool, out: &mut BytesMut) -> Result<bool> {
        let mut numbers = if binary {
            self.read_binary(raw)?
        } else {
            Self::read_text(raw)?
        };
        let mut points = Vec::new();
        let count = match self {
            Self::Line | Self::Circle => return Ok(false),
            Self::Point => 1,
            Self::Segment | Self::Box => 2,
            Self::Path | Self::Polygon => numbers.points,
        };
        for _ in 0..count {
            points.push((numbers.next()?, numbers.next()?));
        }
        if points.is_empty() || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
            return Ok(false);
        }
        if let (Self::Box, &[(right, top), (left, bottom)]) = (self, &*points) {
            points = vec![(left, bottom), (right, bottom), (right, top), (left, top)];
        }
        let (head, tail): (&[u8], &[u8]) = match self {
            Self::Point => (br#"{"type":"Point","coordinates":"#, b"}"),
            Self::Segment => (br#"{"type":"LineString","coordinates":["#, b"]}"),
            Self::Path if numbers.open => (br#"{"type":"LineString","coordinates":["#, b"]}"),
            _ => {
                points.extend(points.first().copied());
                (br#"{"type":"Polygon","coordinates":[["#, b"]]}")
            }
        };
        out.extend_from_slice(head);
        for (at, (x, y)) in points.into_iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            number::float_json(x, out);
            out.extend_from_slice(b",");
            number::float_json(y, out);
            out.extend_from_slice(b"]");
        }
        out.extend_from_slice(tail);
        Ok(true)
    }

    /// Whether values of the type have a GeoJSON geometry.
    pub(super) fn has_geojson(self) -> bool {
        !matches!(self, Self::Line | Self::Circle)
    }

    fn read_binary(self, raw: &[u8]) -> Result<Numbers<'_>> {
        let mut reader = BinaryReader::new(raw);
        let open = self == Self::Path && reader.u8()? == 0;
        let points = if matches!(self, Self::Path | Self::Polygon) {
            reader.count()?
        } else {
            0
        };
        Ok(Numbers {
            source: NumberSource::Binary(reader),
            open,
            points,
        })
    }

    /// Reads the numbers of a text, in which brackets and commas separate them. A path in square
    /// brackets is open.
    fn read_text(raw: &[u8]) -> Result<Numbers<'_>> {
        let words = raw
            .split(|byte| b"()[]{}<>,".contains(byte))
            .filter(|word| !word.is_empty());
        let numbers: Vec<f64> = words.map(parse).collect::<Result<_>>()?;
        Ok(Numbers {
            open: raw.first() == Some(&b'['),
            points: numbers.len() / 2,
            source: NumberSource::Text(numbers.into_iter()),
        })
    }

    fn json(self, numbers: &mut Numbers<'_>, out: &mut BytesMut) -> Result<()> {
        match self {
            Self::Point => return point(numbers, out),
            Self::Line => {
                for prefix in [&br#"{"A":"#[..], br#","B":"#, br#","C":"#] {
                    out.extend_from_slice(prefix);
                    number::float_json(numbers.next()?, out);
                }
            }
            Self::Segment | Self::Box => {
                out.extend_from_slice(br#"{"start":"#);
                point(numbers, out)?;
                out.extend_from_slice(br#","end":"#);
                point(numbers, out)?;
            }
            Self::Path => {
                out.extend_from_slice(if numbers.open {
                    br#"{"open":true,"#
                } else {
                    br#"{"open":false,"#
                });
                out.extend_from_slice(br#""points":"#);
                points(numbers, out)?;
            }
            Self::Polygon => return points(numbers, out),
            Self::Circle => {
                out.extend_from_slice(br#"{"center":"#);
                point(numbers, out)?;
                out.extend_from_slice(br#","radius":"#);
                number::float_json(numbers.next()?, out);
            }
        }
        out.extend_from_slice(b"}");
        Ok(())
    }
}

fn point(numbers: &mut Numbers<'_>, out: &mut BytesMut) -> Result<()> {
    out.extend_from_slice(br#"{"x":"#);
    number::float_json(numbers.next()?, out);
    out.extend_from_slice(br#","y":"#);
    number::float_json(numbers.next()?, out);
    out.extend_from_slice(b"}");
    Ok(())
}

fn points(numbers: &mut Numbers<'_>, out: &mut BytesMut) -> Result<()> {
    out.extend_from_slice(b"[");
    for at in 0..numbers.points {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        point(numbers, out)?;
    }
    out.extend_from_slice(b"]");
    Ok(())
}
