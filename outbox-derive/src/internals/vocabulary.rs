//! Reads `#[attribute(word = value, ...)]`, going on after every mistake.

use std::fmt::Write as _;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, LitStr, Meta, Path, Token};

use super::attr::Word;
use super::ctxt::Ctxt;
use super::symbol::Symbol;
use super::typo;

/// The words that an attribute knows.
pub(crate) struct Vocabulary {
    pub(crate) attribute: Symbol,
    pub(crate) words: &'static [Symbol],
}

impl Vocabulary {
    /// Reads all of an item's attributes of this name. Their first one is returned, for mistakes of omission.
    pub(crate) fn read<'a>(
        &self,
        cx: &Ctxt,
        attributes: &'a [Attribute],
        mut read: impl FnMut(&Word<'_>),
    ) -> Option<&'a Path> {
        let mut first = None;
        for attribute in attributes.iter().filter(|attribute| *attribute.path() == self.attribute) {
            first = first.or(Some(attribute.path()));
            // Of an attribute that is no list, the macro says what is missing.
            if let Meta::List(list) = &attribute.meta {
                self.read_list(cx, list.tokens.clone(), &mut read);
            }
        }
        first
    }

    /// Reads what stands in the parentheses.
    ///
    /// A misspelt word is reported and then read as the word that was meant, so that its value is checked as well
    /// and the word is not reported as missing.
    pub(crate) fn read_list(&self, cx: &Ctxt, tokens: TokenStream, mut read: impl FnMut(&Word<'_>)) {
        let words = |input: ParseStream<'_>| {
            while !input.is_empty() {
                self.word(cx, input, &mut read);
                if !input.is_empty() && !input.peek(Token![,]) {
                    cx.push(input.error("expected `,`"));
                    skip_word(input);
                }
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(())
        };
        if let Err(error) = words.parse2(tokens) {
            cx.push(error);
        }
    }

    fn word(&self, cx: &Ctxt, input: ParseStream<'_>, read: &mut impl FnMut(&Word<'_>)) {
        if let Ok(literal) = input.fork().parse::<LitStr>() {
            let symbol = self.words[0];
            let at = literal.to_token_stream();
            cx.error(&literal, format_args!("the value stands without its word: {symbol} = {at}"));
            read(&Word { symbol, at, slip: true, bare: true, input });
            return;
        }
        let start = input.fork();
        let Ok(path) = input.call(Path::parse_mod_style) else {
            let found = start.parse().map_or_else(|_| TokenStream::new(), TokenTree::into_token_stream);
            cx.error(found, format_args!("expected {}", self.list()));
            skip_word(input);
            return;
        };
        let exact = self.words.iter().copied().find(|symbol| path == *symbol);
        let Some(symbol) = exact.or_else(|| self.unknown(cx, &path)) else {
            skip_word(input);
            return;
        };
        read(&Word { symbol, at: path.into_token_stream(), slip: exact.is_none(), bare: false, input });
    }

    /// Reports a word that is not in the list, and returns what was probably meant.
    fn unknown(&self, cx: &Ctxt, path: &Path) -> Option<Symbol> {
        let written = path.to_token_stream().to_string().replace(' ', "");
        let attribute = self.attribute;
        let meant = typo::closest(&written, self.words);
        let advice = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected {}", self.list()),
        };
        cx.error(path, format_args!("unknown {attribute} attribute `{written}`; {advice}"));
        meant
    }

    fn list(&self) -> String {
        let mut list = String::new();
        for (i, symbol) in self.words.iter().enumerate() {
            let separator = match i {
                0 => "",
                i if i + 1 == self.words.len() => " or ",
                _ => ", ",
            };
            let _ = write!(list, "{separator}`{symbol}`");
        }
        list
    }
}

/// Goes to the comma that ends a word.
pub(crate) fn skip_word(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}
