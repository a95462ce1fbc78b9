//! The words of `#[handler(...)]`, and the head of the function under it.

use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, LitStr, Path, Result, Signature, Visibility, parse_quote, parse2};

use crate::internals::attr::{Attr, Word};
use crate::internals::ctxt::Ctxt;
use crate::internals::names;
use crate::internals::symbol::{CRATE, HANDLER, ID};
use crate::internals::vocabulary::Vocabulary;

const WORDS: Vocabulary = Vocabulary { attribute: HANDLER, words: &[ID, CRATE] };

/// What the user wrote, word by word.
pub(super) struct Attrs {
    pub(super) id: Attr<LitStr>,
    krate: Attr<Path>,
}

impl Attrs {
    pub(super) fn parse(cx: &Ctxt, arguments: TokenStream) -> Self {
        let mut attrs = Self { id: Attr::none(), krate: Attr::none() };
        WORDS.read_list(cx, arguments, |word| match word.symbol {
            ID => attrs.id.set(cx, word, id(word)),
            _ => attrs.krate.set(cx, word, word.krate()),
        });
        attrs
    }

    pub(super) fn krate(&self) -> Path {
        self.krate.get().cloned().unwrap_or_else(|| parse_quote!(::outbox_core))
    }
}

fn id(word: &Word<'_>) -> Result<LitStr> {
    let grammar = names::HANDLER_ID;
    let id = word.string(&format!("{:?}", grammar.example))?;
    grammar.check(&id.value()).map_err(|problem| Error::new(id.span(), problem))?;
    Ok(id)
}

/// The function's signature. Its body is none of our business, and not reading it saves the time.
pub(super) fn header(cx: &Ctxt, item: &TokenStream) -> Option<Signature> {
    struct Header(Signature);
    impl Parse for Header {
        fn parse(input: ParseStream<'_>) -> Result<Self> {
            input.call(Attribute::parse_outer)?;
            input.parse::<Visibility>()?;
            let signature = input.parse()?;
            input.parse::<TokenStream>()?;
            Ok(Self(signature))
        }
    }
    match parse2(item.clone()) {
        Ok(Header(signature)) => Some(signature),
        Err(error) => {
            cx.push(Error::new(error.span(), "#[handler] stands on an `async fn`"));
            None
        }
    }
}
