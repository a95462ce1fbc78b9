//! Passwords do not appear, whoever writes the text.

/// Hides the login of every URL in a text, and what follows `password=` in its query.
pub(crate) fn redact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        // A password may hold anything that its owner forgot to encode, so the last sign counts.
        let place = match url.rsplit_once('@') {
            Some((_, place)) => {
                shown.push_str("***@");
                place
            }
            None => url,
        };
        let query = place.find("password=").map(|at| at + "password=".len());
        match query {
            Some(at) => {
                let end = place[at..].find('&').map_or(place.len(), |end| at + end);
                shown.extend([&place[..at], "***", &place[end..]]);
            }
            None => shown.push_str(place),
        }
        rest = tail;
    }
    shown + rest
}

/// The place of a URL: no login and no query.
pub(crate) fn place(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let rest = rest.trim_start_matches("//");
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_of_a_url_is_hidden_wherever_it_stands() {
        for (text, shown) in [
            ("no URL", "no URL"),
            ("a: postgres://ann:s3cret@host/db, b", "a: postgres://***@host/db, b"),
            ("mysql://ann:p@ss/w:rd@host:3306/db", "mysql://***@host:3306/db"),
            (
                "'postgres://host/db?password=s3cret&x=1' failed",
                "'postgres://host/db?password=***&x=1' failed",
            ),
            ("sqlite://a.db?mode=rwc and postgres://a:b@c", "sqlite://a.db?mode=rwc and postgres://***@c"),
        ] {
            assert_eq!(redact(text), shown);
        }
    }

    #[test]
    fn a_place_has_no_login() {
        assert_eq!(place("postgres://ann:p@ss@host:1/db?password=x"), "postgres://host:1/db");
        assert_eq!(place("sqlite::memory:"), "sqlite://:memory:");
    }
}
