//! The words of `#[outbox(...)]` on the type.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{DeriveInput, Error, LitInt, LitStr, Path, Result, parenthesized, parse_quote, token};

use crate::internals::attr::{Attr, Word};
use crate::internals::ctxt::Ctxt;
use crate::internals::names;
use crate::internals::symbol::{
    AGGREGATE, ALIAS, CRATE, KEY, NAME, NONE, ORDERING, OUTBOX, UPCAST_FROM, VERSION,
};
use crate::internals::typo;
use crate::internals::vocabulary::Vocabulary;

const WORDS: Vocabulary = Vocabulary {
    attribute: OUTBOX,
    words: &[NAME, VERSION, ORDERING, CRATE],
    reserved: &[ALIAS, UPCAST_FROM],
};

/// What the user wrote, word by word.
pub(super) struct Attrs<'a> {
    /// The word `outbox` of the first attribute.
    pub(super) outbox: Option<&'a Path>,
    pub(super) name: Attr<LitStr>,
    pub(super) version: Attr<u16>,
    pub(super) ordering: Attr<Ordering>,
    krate: Attr<Path>,
}

impl<'a> Attrs<'a> {
    pub(super) fn parse(cx: &Ctxt, input: &'a DeriveInput) -> Self {
        let mut attrs = Self {
            outbox: None,
            name: Attr::none(),
            version: Attr::none(),
            ordering: Attr::none(),
            krate: Attr::none(),
        };
        attrs.outbox = WORDS.read(cx, &input.attrs, |word| match word.symbol {
            NAME => attrs.name.set(cx, word, name(word)),
            VERSION => attrs.version.set(cx, word, version(word)),
            ORDERING => attrs.ordering.set(cx, word, ordering(word)),
            _ => attrs.krate.set(cx, word, word.krate()),
        });
        attrs
    }

    pub(super) fn krate(&self) -> Path {
        self.krate.get().cloned().unwrap_or_else(|| parse_quote!(::outbox_core))
    }
}

fn name(word: &Word<'_>) -> Result<LitStr> {
    let grammar = names::EVENT_NAME;
    let name = word.string(&format!("{:?}", grammar.example))?;
    grammar.check(&name.value()).map_err(|problem| Error::new(name.span(), problem))?;
    Ok(name)
}

fn version(word: &Word<'_>) -> Result<u16> {
    let version: LitInt = word.value("1, an integer in 1..=65535")?;
    match version.base10_parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Error::new(version.span(), "`version` must be an integer in 1..=65535")),
    }
}

/// The policy, as written.
pub(super) enum Ordering {
    Aggregate,
    None,
    Key(Ident),
}

fn ordering(word: &Word<'_>) -> Result<Ordering> {
    const SHAPE: &str = "aggregate, none or key(field)";
    let policy: Ident = word.value(SHAPE)?;
    if policy == KEY.0 {
        return key(word.rest(), &policy);
    }
    if policy == AGGREGATE.0 {
        return Ok(Ordering::Aggregate);
    }
    if policy == NONE.0 {
        return Ok(Ordering::None);
    }
    let advice = match typo::closest(&policy.to_string(), &[AGGREGATE, NONE, KEY]) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "expected `aggregate`, `none` or `key(field)`".to_owned(),
    };
    Err(Error::new(policy.span(), format_args!("unknown ordering `{policy}`; {advice}")))
}

/// The `(field)` behind `key`.
fn key(input: ParseStream<'_>, policy: &Ident) -> Result<Ordering> {
    let mut at = policy.to_token_stream();
    if input.peek(token::Paren) {
        let content;
        parenthesized!(content in input);
        let field: TokenStream = content.parse()?;
        if let Ok(field) = Ident::parse_any.parse2(field.clone()) {
            return Ok(Ordering::Key(field));
        }
        if !field.is_empty() {
            at = field;
        }
    }
    Err(Error::new_spanned(
        at,
        "`key` takes the one field whose value is the key: ordering = key(customer_id)",
    ))
}
