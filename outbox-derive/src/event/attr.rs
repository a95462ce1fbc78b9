//! The words of `#[outbox(...)]` on the type.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{DeriveInput, Error, LitInt, LitStr, Path, Result, Type, parenthesized, parse_quote, token};

use super::steps::{self, Steps};
use crate::internals::attr::{Attr, Word};
use crate::internals::ctxt::Ctxt;
use crate::internals::names;
use crate::internals::symbol::{
    AGGREGATE, ALIAS, CRATE, DRAFT, KEY, NAME, NONE, ON_DEAD, ORDERING, OUTBOX, UPCAST_FROM, UPCAST_JSON,
    VERSION,
};
use crate::internals::typo;
use crate::internals::vocabulary::{Vocabulary, skip_word};

const WORDS: Vocabulary = Vocabulary {
    attribute: OUTBOX,
    words: &[NAME, VERSION, ORDERING, ON_DEAD, UPCAST_FROM, UPCAST_JSON, ALIAS, DRAFT, CRATE],
};

/// What the user wrote, word by word.
pub(super) struct Attrs<'a> {
    /// The word `outbox` of the first attribute.
    pub(super) outbox: Option<&'a Path>,
    pub(super) name: Attr<LitStr>,
    pub(super) version: Attr<u16>,
    pub(super) ordering: Attr<Ordering>,
    /// Whether its dead letters let their key go on, and where that is said.
    pub(super) on_dead: Attr<(bool, Ident)>,
    pub(super) upcast_from: Attr<Type>,
    pub(super) upcast_json: Attr<Steps>,
    /// An event may have had several names.
    pub(super) aliases: Vec<LitStr>,
    pub(super) draft: Attr<()>,
    krate: Attr<Path>,
}

impl<'a> Attrs<'a> {
    pub(super) fn parse(cx: &Ctxt, input: &'a DeriveInput) -> Self {
        let mut attrs = Self {
            outbox: None,
            name: Attr::none(),
            version: Attr::none(),
            ordering: Attr::none(),
            on_dead: Attr::none(),
            upcast_from: Attr::none(),
            upcast_json: Attr::none(),
            aliases: Vec::new(),
            draft: Attr::none(),
            krate: Attr::none(),
        };
        attrs.outbox = WORDS.read(cx, &input.attrs, |word| match word.symbol {
            NAME => attrs.name.set(cx, word, name(word)),
            VERSION => attrs.version.set(cx, word, version(word)),
            ORDERING => attrs.ordering.set(cx, word, ordering(word)),
            ON_DEAD => attrs.on_dead.set(cx, word, on_dead(word)),
            UPCAST_FROM => attrs.upcast_from.set(cx, word, word.value("ThePreviousVersion")),
            UPCAST_JSON => attrs.upcast_json.set(cx, word, steps::parse(cx, word)),
            ALIAS => match name(word) {
                Ok(alias) => attrs.aliases.push(alias),
                Err(error) => {
                    cx.push(error);
                    skip_word(word.rest());
                }
            },
            DRAFT => attrs.draft.set(cx, word, word.flag()),
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
    number(&version).ok_or_else(|| Error::new(version.span(), "`version` must be an integer in 1..=65535"))
}

/// A version is never 0.
pub(super) fn number(literal: &LitInt) -> Option<u16> {
    literal.base10_parse().ok().filter(|number| *number > 0)
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

fn on_dead(word: &Word<'_>) -> Result<(bool, Ident)> {
    let policy: Ident = word.value("block or proceed")?;
    match policy.to_string().as_str() {
        "block" => Ok((false, policy)),
        "proceed" => Ok((true, policy)),
        other => Err(Error::new(
            policy.span(),
            format_args!("unknown policy `{other}`; expected `block` or `proceed`"),
        )),
    }
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
