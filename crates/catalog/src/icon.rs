//! Pictures of charts, drawn anew as a small PNG. Pure.
//!
//! Main function: [`draw`]. Nothing of the original reaches a browser: an SVG may hold scripts, and
//! any format may hold what some decoder does not survive.

use image::{
    DynamicImage, ImageReader, Limits, RgbaImage,
    codecs::png::{self, CompressionType, PngEncoder},
    imageops::FilterType,
};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, roxmltree},
};
use std::{collections::HashMap, io::Cursor};

/// The longest side of what is drawn, in pixels.
const SIDE: u32 = 160;
/// The longest side that is decoded.
const MAX_SIDE: u32 = 4_096;
const MAX_ALLOC: u64 = 96 << 20;
/// Elements of an SVG, counted as often as they are drawn.
const MAX_ELEMENTS: u64 = 50_000;
const MAX_DEPTH: usize = 64;

/// The content type of what is drawn.
pub const CONTENT_TYPE: &str = "image/png";

/// Why a picture cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IconFault {
    #[error("{0} is no picture")]
    Kind(String),
    #[error("the picture cannot be read: {0}")]
    Broken(String),
    #[error("the picture is too large")]
    Large,
    #[error("the picture has no size")]
    NoSize,
    #[error("a file of this machine is no icon")]
    Local,
}

/// Draws a picture as a PNG that fits in 160 by 160 pixels; smaller ones keep their size.
/// `kind` is its content type: an SVG is told by it, other formats by their content.
///
/// # Errors
/// It is in no known format, or too large.
pub fn draw(content: &[u8], kind: &str) -> Result<Vec<u8>, IconFault> {
    let picture = if kind.contains("image/svg") {
        drawn_svg(content)?
    } else {
        decoded(content)?
    };
    let mut png = Vec::new();
    let (best, adaptive) = (CompressionType::Best, png::FilterType::Adaptive);
    let encoder = PngEncoder::new_with_quality(&mut png, best, adaptive);
    let written = smallest(picture).write_with_encoder(encoder);
    written.map_err(|e| IconFault::Broken(e.to_string()))?;
    Ok(png)
}

/// Without the transparency of a picture that has none.
fn smallest(picture: DynamicImage) -> DynamicImage {
    let is_opaque = picture
        .as_rgba8()
        .is_some_and(|rgba| rgba.pixels().all(|pixel| pixel.0[3] == u8::MAX));
    if is_opaque {
        DynamicImage::ImageRgb8(picture.into_rgb8())
    } else {
        picture
    }
}

/// The content and type of a `data:` URL; `None`: it is another URL.
///
/// # Errors
/// It is no such URL, or too large.
pub fn in_url(url: &str) -> Option<Result<(Vec<u8>, String), IconFault>> {
    let is_data = url
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    is_data.then(|| {
        let broken = |_| IconFault::Broken("its address is no data URL".to_owned());
        let url = data_url::DataUrl::process(url).map_err(broken)?;
        let mime = url.mime_type();
        let kind = format!("{}/{}", mime.type_, mime.subtype);
        if mime.type_ != "image" {
            return Err(IconFault::Kind(kind));
        }
        let body = url.decode_to_vec();
        let (content, _) = body.map_err(|e| IconFault::Broken(e.to_string()))?;
        Ok((content, kind))
    })
}

fn fitting(width: f64, height: f64) -> Result<(u32, u32), IconFault> {
    if !(width >= 1.0 && height >= 1.0 && width.is_finite() && height.is_finite()) {
        return Err(IconFault::NoSize);
    }
    let scale = (f64::from(SIDE) / width.max(height)).min(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 160"
    )]
    let side = |length: f64| ((length * scale).floor() as u32).clamp(1, SIDE);
    Ok((side(width), side(height)))
}

fn decoded(content: &[u8]) -> Result<DynamicImage, IconFault> {
    let broken = |e: &dyn std::fmt::Display| IconFault::Broken(e.to_string());
    let reader = ImageReader::new(Cursor::new(content)).with_guessed_format();
    let mut reader = reader.map_err(|e| broken(&e))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_ALLOC);
    reader.limits(limits);
    let picture = reader.decode().map_err(|e| match e {
        image::ImageError::Limits(_) => IconFault::Large,
        e => broken(&e),
    })?;
    let (width, height) = fitting(picture.width().into(), picture.height().into())?;
    if (width, height) == (picture.width(), picture.height()) {
        return Ok(DynamicImage::ImageRgba8(picture.to_rgba8()));
    }
    let picture = DynamicImage::ImageRgba8(picture.to_rgba8());
    Ok(resized(&picture, width, height))
}

/// Colours count as much as they are seen: those of transparent pixels must not shine through.
fn resized(picture: &DynamicImage, width: u32, height: u32) -> DynamicImage {
    let small = picture.width().max(picture.height()) <= SIDE * 8;
    let mut exact = if small {
        picture.to_rgba32f()
    } else {
        picture.thumbnail(SIDE * 4, SIDE * 4).to_rgba32f()
    };
    for pixel in exact.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        pixel.0 = [red * alpha, green * alpha, blue * alpha, alpha];
    }
    let mut small = image::imageops::resize(&exact, width, height, FilterType::Lanczos3);
    for pixel in small.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0.map(|value| value.clamp(0.0, 1.0));
        let seen = if alpha > 0.0 { alpha } else { 1.0 };
        pixel.0 = [red / seen, green / seen, blue / seen, alpha].map(|value| value.min(1.0));
    }
    DynamicImage::ImageRgba8(DynamicImage::ImageRgba32F(small).to_rgba8())
}

fn drawn_svg(content: &[u8]) -> Result<DynamicImage, IconFault> {
    let broken = |e: &dyn std::fmt::Display| IconFault::Broken(e.to_string());
    let text = std::str::from_utf8(content).map_err(|e| broken(&e))?;
    let document = roxmltree::Document::parse(text).map_err(|e| broken(&e))?;
    if drawn_elements(&document) > MAX_ELEMENTS {
        return Err(IconFault::Large);
    }
    let mut options = Options::default();
    // Nothing outside of the picture is looked at.
    options.image_href_resolver.resolve_string = Box::new(|_, _| None);
    options.image_href_resolver.resolve_data = Box::new(|_, _, _| None);
    let view = view_box(&document);
    // The size of what is drawn is no size of a picture.
    if view.is_none() && !has_size(&document) {
        return Err(IconFault::NoSize);
    }
    let tree = Tree::from_xmltree(&document, &options).map_err(|e| broken(&e))?;
    let size = tree.size();
    let (from_x, from_y) = (f64::from(size.width()), f64::from(size.height()));
    let (width, height) = view.unwrap_or((from_x, from_y));
    let (width, height) = fitting(width, height)?;
    let mut pixels = Pixmap::new(width, height).ok_or(IconFault::NoSize)?;
    #[expect(clippy::cast_possible_truncation, reason = "sizes of pictures")]
    let scale = |to: u32, from: f64| (f64::from(to) / from) as f32;
    let scaled = Transform::from_scale(scale(width, from_x), scale(height, from_y));
    resvg::render(&tree, scaled, &mut pixels.as_mut());
    let mut bytes = Vec::with_capacity(pixels.data().len());
    for pixel in pixels.pixels() {
        let pixel = pixel.demultiply();
        bytes.extend([pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()]);
    }
    let picture = RgbaImage::from_raw(width, height, bytes).ok_or(IconFault::NoSize)?;
    Ok(DynamicImage::ImageRgba8(picture))
}

/// Width and height of what the picture shows, before it is scaled to its nominal size.
fn view_box(document: &roxmltree::Document<'_>) -> Option<(f64, f64)> {
    let text = document.root_element().attribute("viewBox")?;
    let numbers = text.split([' ', ',', '\n', '\t']).filter(|n| !n.is_empty());
    let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [_, _, width, height] => Some((width, height)),
        _ => None,
    }
}

fn has_size(document: &roxmltree::Document<'_>) -> bool {
    let root = document.root_element();
    ["width", "height"].into_iter().all(|side| {
        let length = root.attribute(side);
        length.is_some_and(|length| !length.trim_end().ends_with('%'))
    })
}

/// How many elements are drawn, counting what others refer to each time.
fn drawn_elements(document: &roxmltree::Document<'_>) -> u64 {
    let named = document
        .descendants()
        .filter_map(|node| Some((node.attribute("id")?, node)));
    let named: HashMap<&str, roxmltree::Node<'_, '_>> = named.collect();
    let mut counted = HashMap::new();
    count(document.root_element(), &named, &mut counted, 0)
}

fn count<'a, 'input>(
    node: roxmltree::Node<'a, 'input>,
    named: &HashMap<&str, roxmltree::Node<'a, 'input>>,
    counted: &mut HashMap<roxmltree::NodeId, u64>,
    depth: usize,
) -> u64 {
    if let Some(known) = counted.get(&node.id()) {
        return *known;
    }
    if depth > MAX_DEPTH {
        return u64::MAX;
    }
    // A circle is found by its depth, unless this one is met again first.
    counted.insert(node.id(), 1);
    let mut all = 1_u64;
    for child in node.children().filter(roxmltree::Node::is_element) {
        all = all.saturating_add(count(child, named, counted, depth + 1));
    }
    for attribute in node.attributes() {
        let value = attribute.value();
        let target = value
            .split_once('#')
            .map(|(_, name)| name.trim_end_matches([')', ' ', '"']));
        if let Some(target) = target.and_then(|name| named.get(name)) {
            all = all.saturating_add(count(*target, named, counted, depth + 1));
        }
    }
    counted.insert(node.id(), all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::ImageFormat;

    const SVG: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" width="400">
        <rect width="40" height="20" fill="#0a0"/></svg>"##;

    fn size(png: &[u8]) -> (u32, u32) {
        let picture = image::load_from_memory(png).expect("a PNG");
        (picture.width(), picture.height())
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut png = Cursor::new(Vec::new());
        let picture = DynamicImage::new_rgba8(width, height);
        picture
            .write_to(&mut png, ImageFormat::Png)
            .expect("memory");
        png.into_inner()
    }

    #[test]
    fn pictures_fit() {
        for (from, to) in [
            ((200, 100), (160, 80)),
            ((100, 400), (40, 160)),
            ((16, 16), (16, 16)),
            ((2_000, 1), (160, 1)),
        ] {
            let drawn = draw(&png(from.0, from.1), "image/png").expect("a picture");
            assert_eq!(size(&drawn), to);
        }
        let drawn = draw(SVG.as_bytes(), "image/svg+xml; charset=utf-8").expect("a picture");
        assert_eq!(size(&drawn), (40, 20));
        assert_eq!(draw(&png(5_000, 1), "image/png"), Err(IconFault::Large));
        assert!(matches!(
            draw(b"<html>", "image/png"),
            Err(IconFault::Broken(_))
        ));
        assert!(matches!(
            draw(b"<html>", "image/svg+xml"),
            Err(IconFault::Broken(_))
        ));
    }

    #[test]
    fn a_drawing_needs_a_size() {
        for (size, wanted) in [
            ("", None),
            ("width='48'", None),
            ("width='100%' height='100%'", None),
            ("width='48' height='24'", Some((48, 24))),
            ("viewBox='0 0 12 6' width='100%'", Some((12, 6))),
        ] {
            let svg = format!(
                "<svg xmlns='http://www.w3.org/2000/svg' {size}><rect width='9' height='9'/></svg>"
            );
            let drawn = draw(svg.as_bytes(), "image/svg+xml");
            let found = drawn.map(|png| self::size(&png));
            assert_eq!(found, wanted.ok_or(IconFault::NoSize), "{size}");
        }
    }

    #[test]
    fn only_transparent_pictures_have_transparency() {
        let of = |alpha: u8| {
            let mut picture = RgbaImage::from_pixel(16, 16, image::Rgba([9, 8, 7, u8::MAX]));
            picture.put_pixel(3, 3, image::Rgba([1, 2, 3, alpha]));
            let mut png = Cursor::new(Vec::new());
            let written = picture.write_to(&mut png, ImageFormat::Png);
            written.expect("memory");
            let drawn = draw(png.get_ref(), "image/png").expect("a picture");
            let drawn = image::load_from_memory(&drawn).expect("a PNG");
            assert_eq!(drawn.to_rgba8(), picture);
            drawn.color().has_alpha()
        };
        assert_eq!((of(u8::MAX), of(254), of(0)), (false, true, true));
    }

    #[test]
    fn pictures_that_draw_themselves_again_and_again_are_refused() {
        let mut laughs = String::from(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><defs><g id="a0"><rect width="9" height="9"/></g>"#,
        );
        for level in 1..12 {
            laughs.push_str(&format!(r#"<g id="a{level}">"#));
            for _ in 0..10 {
                laughs.push_str(&format!(r##"<use href="#a{}"/>"##, level - 1));
            }
            laughs.push_str("</g>");
        }
        laughs.push_str(r##"</defs><use href="#a11"/></svg>"##);
        assert_eq!(
            draw(laughs.as_bytes(), "image/svg+xml"),
            Err(IconFault::Large)
        );
        let circle = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g id="a"><use href="#a"/></g></svg>"##;
        let _ = draw(circle.as_bytes(), "image/svg+xml");
    }

    #[test]
    fn pictures_in_addresses() {
        let (content, kind) = in_url("data:image/svg+xml,%3Csvg%20/%3E")
            .expect("data")
            .expect("ok");
        assert_eq!((&*content, &*kind), (&b"<svg />"[..], "image/svg+xml"));
        let html = in_url("data:text/html;base64,PHNjcmlwdD4=").expect("data");
        assert_eq!(html, Err(IconFault::Kind("text/html".to_owned())));
        assert_eq!(in_url("https://example.com/a.png"), None);
    }
}
