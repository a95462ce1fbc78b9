//! The words of `#[outbox(...)]` on the type.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::{DeriveInput, Error, LitInt, LitStr, Path, Result, parenthesized, parse_quote};

use crate::internals::attr::{Attr, Vocabulary, Word};
use crate::internals::ctxt::Ctxt;
use crate::internals::names;
use crate::internals::symbol::{
    AGGREGATE, ALIAS, CRATE, KEY, NAME, NONE, ORDERING, OUTBOX, Symbol, UPCAST_FROM, VERSION,
};
use crate::internals::typo;

const WORDS: Vocabulary =
    Vocabulary { attribute: OUTBOX, words: &[NAME, VERSION, ORDERING, CRATE], reserved: &[ALIAS, UPCAST_FROM] };

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
            ORDERING => attrs.ordering.set(cx, word, word.value("aggregate, none or key(field)")),
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

impl Parse for Ordering {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let policy: Ident = input.parse()?;
        if policy == KEY.0 {
            return key(input, &policy);
        }
        if policy == AGGREGATE.0 {
            return Ok(Self::Aggregate);
        }
        if policy == NONE.0 {
            return Ok(Self::None);
        }
        let advice = match typo::closest(&policy.to_string(), &[AGGREGATE, NONE, KEY]) {
            Some(Symbol(meant)) => format!("did you mean `{meant}`?"),
            None => "expected `aggregate`, `none` or `key(field)`".to_owned(),
        };
        Err(Error::new(policy.span(), format_args!("unknown ordering `{policy}`; {advice}")))
    }
}

fn key(input: ParseStream<'_>, policy: &Ident) -> Result<Ordering> {
    const SHAPE: &str = "`key` takes the one field whose value is the key: ordering = key(customer_id)";
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(policy.span(), SHAPE));
    }
    let content;
    parenthesized!(content in input);
    let field = content.call(Ident::parse_any).map_err(|error| Error::new(error.span(), SHAPE))?;
    if content.is_empty() { Ok(Ordering::Key(field)) } else { Err(content.error(SHAPE)) }
}
