//! PostGIS values: extended well-known binary (OGC 06-103r4, section 8.2, with PostGIS' flags for
//! Z, M and SRID) as GeoJSON geometries (RFC 7946, section 3.1).
//!
//! GeoJSON has no measures, so they are left out. If the SRID is not that of WGS 84, the member
//! `crs` names it (GeoJSON 2008, section 3; PostGIS, `ST_AsGeoJSON`), so that the value can be
//! written back. GeoJSON has no curves, so a value that contains a curve is written as hexadecimal
//! well-known binary.

use bytes::BytesMut;

use crate::append::{json, number};
use crate::binary_reader::exact;
use crate::error::{MalformedValue, Result};

const HAS_Z: u32 = 0x8000_0000;
const HAS_M: u32 = 0x4000_0000;
const HAS_SRID: u32 = 0x2000_0000;

/// The SRID of WGS 84, the coordinate system of GeoJSON.
const WGS_84: u32 = 4326;

/// The deepest nesting of collections that is read. PostGIS itself reads at most 200.
const MAX_DEPTH: usize = 200;

/// Appends a value as GeoJSON, or as a string of hexadecimal digits if GeoJSON cannot represent it.
pub(super) fn json(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let start = out.len();
    let mut reader = Wkb {
        rest: raw,
        little: false,
        srid: 0,
    };
    if reader.geometry(MAX_DEPTH, out)? == Representation::Yes {
        return if reader.rest.is_empty() {
            Ok(())
        } else {
            Err(MalformedValue)
        };
    }
    out.truncate(start);
    out.extend_from_slice(b"\"");
    json::hex(raw, out);
    out.extend_from_slice(b"\"");
    Ok(())
}

/// Whether GeoJSON can represent a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Representation {
    Yes,
    No,
}

/// A reader of extended well-known binary.
struct Wkb<'a> {
    /// The bytes that were not read yet.
    rest: &'a [u8],
    /// Whether the byte order of the current geometry is little-endian.
    little: bool,
    /// The SRID of the value; 0 if the value has none. `reference_system` resets it to 0, so that
    /// `crs` is written only once.
    srid: u32,
}

/// The kind of a geometry, and whether its positions have Z and M coordinates.
#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    z: bool,
    m: bool,
}

impl Wkb<'_> {
    fn u32(&mut self) -> Result<u32> {
        let (head, rest) = self.rest.split_at_checked(4).ok_or(MalformedValue)?;
        self.rest = rest;
        let bytes = exact(head)?;
        Ok(if self.little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    fn f64(&mut self) -> Result<f64> {
        let (head, rest) = self.rest.split_at_checked(8).ok_or(MalformedValue)?;
        self.rest = rest;
        let bytes = exact(head)?;
        Ok(if self.little {
            f64::from_le_bytes(bytes)
        } else {
            f64::from_be_bytes(bytes)
        })
    }

    fn header(&mut self) -> Result<Header> {
        let (&order, rest) = self.rest.split_first().ok_or(MalformedValue)?;
        self.rest = rest;
        self.little = order == 1;
        let word = self.u32()?;
        if word & HAS_SRID != 0 {
            self.srid = self.u32()?;
        }
        let kind = word & 0x0FFF_FFFF;
        Ok(Header {
            kind: kind % 1000,
            z: word & HAS_Z != 0 || matches!(kind / 1000, 1 | 3),
            m: word & HAS_M != 0 || matches!(kind / 1000, 2 | 3),
        })
    }

    /// Appends a geometry; `depth` is the nesting that is still allowed. If GeoJSON cannot
    /// represent the geometry, `out` has part of it.
    fn geometry(&mut self, depth: usize, out: &mut BytesMut) -> Result<Representation> {
        let depth = depth.checked_sub(1).ok_or(MalformedValue)?;
        let header = self.header()?;
        let (name, nesting) = match header.kind {
            1 => ("Point", 0),
            2 => ("LineString", 1),
            3 | 17 => ("Polygon", 2),
            4 => ("MultiPoint", 0),
            5 => ("MultiLineString", 1),
            6 | 15 | 16 => ("MultiPolygon", 2),
            7 => return self.collection(depth, out),
            _ => return Ok(Representation::No),
        };
        out.extend_from_slice(br#"{"type":""#);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",");
        self.reference_system(out);
        out.extend_from_slice(br#""coordinates":"#);
        if matches!(header.kind, 1 | 2 | 3 | 17) {
            self.coordinates(header, nesting, out)?;
        } else {
            self.list(out, |wkb, out| {
                let member = wkb.header()?;
                wkb.coordinates(member, nesting, out)
            })?;
        }
        out.extend_from_slice(b"}");
        Ok(Representation::Yes)
    }

    fn collection(&mut self, depth: usize, out: &mut BytesMut) -> Result<Representation> {
        out.extend_from_slice(br#"{"type":"GeometryCollection","#);
        self.reference_system(out);
        out.extend_from_slice(br#""geometries":"#);
        let shown = self.list(out, |wkb, out| wkb.geometry(depth, out))?;
        out.extend_from_slice(b"}");
        Ok(shown)
    }

    /// Appends the member `crs` with the SRID, at most once for each value. Appends nothing for WGS
    /// 84, or if there is no SRID.
    fn reference_system(&mut self, out: &mut BytesMut) {
        let srid = std::mem::take(&mut self.srid);
        if !matches!(srid, 0 | WGS_84) {
            out.extend_from_slice(br#""crs":{"type":"name","properties":{"name":"EPSG:"#);
            number::integer(srid, out);
            out.extend_from_slice(br#""}},"#);
        }
    }

    /// Appends the items of a list. In the binary value, the number of items precedes the items.
    /// Stops at the first item that GeoJSON cannot represent.
    fn list(
        &mut self,
        out: &mut BytesMut,
        mut item: impl FnMut(&mut Self, &mut BytesMut) -> Result<Representation>,
    ) -> Result<Representation> {
        let count = self.u32()?;
        out.extend_from_slice(b"[");
        for at in 0..count {
            if at > 0 {
                out.extend_from_slice(b",");
            }
            if item(self, out)? == Representation::No {
                return Ok(Representation::No);
            }
        }
        out.extend_from_slice(b"]");
        Ok(Representation::Yes)
    }

    /// Appends coordinates: a position if `nesting` is 0, a list of positions if it is 1, a list of
    /// lists of positions if it is 2.
    fn coordinates(
        &mut self,
        header: Header,
        nesting: usize,
        out: &mut BytesMut,
    ) -> Result<Representation> {
        match nesting {
            0 => self.position(header, out).map(|()| Representation::Yes),
            _ => self.list(out, |wkb, out| wkb.coordinates(header, nesting - 1, out)),
        }
    }

    /// Appends a position as `[x,y]` or `[x,y,z]`. An empty point has only NaN, and becomes an
    /// empty array.
    fn position(&mut self, header: Header, out: &mut BytesMut) -> Result<()> {
        let (x, y) = (self.f64()?, self.f64()?);
        let z = if header.z { Some(self.f64()?) } else { None };
        if header.m {
            self.f64()?;
        }
        out.extend_from_slice(b"[");
        if !(x.is_nan() && y.is_nan()) {
            number::float_json(x, out);
            out.extend_from_slice(b",");
            number::float_json(y, out);
            if let Some(z) = z {
                out.extend_from_slice(b",");
                number::float_json(z, out);
            }
        }
        out.extend_from_slice(b"]");
        Ok(())
    }
}
