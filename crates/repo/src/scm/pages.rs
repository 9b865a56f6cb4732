//! Listings of several pages: none is left out, and none goes on for ever. Main functions:
//! [`Session::list`] and [`Session::follow`].

use super::{ScmError, http::Session};
use reqwest::{Url, header::HeaderMap};
use serde::de::DeserializeOwned;

/// The most pages and elements of one listing.
const MOST_PAGES: usize = 1_000;
const MOST_ITEMS: usize = 100_000;

/// How a host numbers its pages.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    /// The parameter with the size of a page, and the size.
    pub size: (&'static str, usize),
}

/// What an answer says about the next page.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    None,
    Number(usize),
    /// There is one, and nothing says which.
    Unknown,
}

/// What a listing has taken.
#[derive(Default)]
pub(super) struct Bounds {
    pages: usize,
    items: usize,
}

impl Bounds {
    /// # Errors
    /// If it is too long with this page.
    pub fn take(&mut self, session: &Session<'_>, url: &Url, items: usize) -> Result<(), ScmError> {
        self.pages += 1;
        self.items += items;
        match self.pages > MOST_PAGES || self.items > MOST_ITEMS {
            true => Err(session.wrong(
                url,
                &format!("the list has more than {MOST_ITEMS} elements or {MOST_PAGES} pages"),
            )),
            false => Ok(()),
        }
    }
}

impl Session<'_> {
    /// A list whose pages are numbered; headers name the next one. A full page that names none is
    /// not believed to be the last: another one is asked for.
    pub async fn list<T>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        pages: Numbered,
    ) -> Result<Vec<T>, ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let (mut all, mut number) = (Vec::new(), 1);
        let mut bounds = Bounds::default();
        let (name, size) = pages.size;
        loop {
            let (sizes, numbers) = (size.to_string(), number.to_string());
            let mut query = query.to_vec();
            query.push((name, &sizes));
            if number > 1 {
                query.push(("page", &numbers));
            }
            let url = self.url(path, &query)?;
            let (page, headers): (Vec<T>, _) = self.get(&url).await?;
            let count = page.len();
            bounds.take(self, &url, count)?;
            all.extend(page);
            number = match next(&headers, number, count, (size, all.len())) {
                Next::None => return Ok(all),
                Next::Number(next) => next,
                Next::Unknown => {
                    return Err(self.wrong(&url, "the next page has no number"));
                }
            };
        }
    }

    /// A list whose answers say where it goes on: `split` takes an answer apart.
    pub async fn follow<P, T>(
        &self,
        first: Url,
        mut split: impl FnMut(&Url, P) -> Result<(Vec<T>, Option<Url>), ScmError>,
    ) -> Result<Vec<T>, ScmError>
    where
        P: DeserializeOwned + Send + 'static,
    {
        let (mut all, mut url) = (Vec::new(), first);
        let mut bounds = Bounds::default();
        loop {
            let (page, _): (P, _) = self.get(&url).await?;
            let (items, next) = split(&url, page)?;
            bounds.take(self, &url, items.len())?;
            all.extend(items);
            match next {
                Some(next) if next == url => {
                    return Err(self.wrong(&url, "the next page is the same one"));
                }
                Some(next) => url = next,
                None => return Ok(all),
            }
        }
    }
}

/// `count`: the elements of this page; `size`: of a full one, and of all pages so far.
fn next(headers: &HeaderMap, number: usize, count: usize, size: (usize, usize)) -> Next {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let links = headers.get_all("link").iter();
    let linked = links
        .filter_map(|link| link.to_str().ok())
        .flat_map(|link| link.split(','))
        .find(|link| link.contains("rel=\"next\""));
    if let Some(link) = linked {
        return page_of(link).map_or(Next::Unknown, Next::Number);
    }
    if let Some(named) = text("x-next-page") {
        return match named.trim() {
            "" => Next::None,
            named => named.parse().map_or(Next::Unknown, Next::Number),
        };
    }
    let total = text("x-total-count").and_then(|total| total.parse::<usize>().ok());
    let more = match total {
        Some(total) => total > size.1,
        None => count >= size.0,
    };
    match more && count > 0 {
        true => Next::Number(number + 1),
        false => Next::None,
    }
}

/// The number of the page in `<https://…?page=2>; rel="next"`.
fn page_of(link: &str) -> Option<usize> {
    let address = link.split_once('<')?.1.split_once('>')?.0;
    let url = Url::parse(address).ok()?;
    let (_, page) = url.query_pairs().find(|(name, _)| name == "page")?;
    page.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_listing_goes_on() {
        const LINK: &str =
            "<https://h/x?per_page=2&page=3>; rel=\"next\", <https://h/x?page=9>; rel=\"last\"";
        for (header, value, count, all, expected) in [
            ("link", LINK, 2, 4, Next::Number(3)),
            (
                "link",
                "<https://h/x?page=1>; rel=\"prev\"",
                1,
                3,
                Next::None,
            ),
            (
                "link",
                "<https://h/x?after=b>; rel=\"next\"",
                2,
                4,
                Next::Unknown,
            ),
            ("x-next-page", "3", 1, 3, Next::Number(3)),
            ("x-next-page", "", 2, 4, Next::None),
            ("x-next-page", "x", 2, 4, Next::Unknown),
            ("x-total-count", "5", 1, 4, Next::Number(3)),
            ("x-total-count", "4", 2, 4, Next::None),
            ("x-total-count", "5", 0, 4, Next::None),
            // Whoever says nothing is asked again after a full page.
            ("x-other", "", 2, 4, Next::Number(3)),
            ("x-other", "", 1, 3, Next::None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header, value.parse().expect("a value"));
            let found = next(&headers, 2, count, (2, all));
            assert_eq!(found, expected, "{header}: {value}");
        }
    }
}
