//! Reads `#[attribute(word = value, ...)]`, going on after every mistake.

use std::fmt::Write as _;

use proc_macro2::TokenTree;
use quote::ToTokens as _;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, LitStr, Path, Result, Token};

use super::ctxt::Ctxt;
use super::symbol::Symbol;
use super::typo;

/// The words that an attribute knows.
pub(crate) struct Vocabulary {
    pub(crate) attribute: Symbol,
    pub(crate) words: &'static [Symbol],
    /// Words that are kept free for what is to come.
    pub(crate) reserved: &'static [Symbol],
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
            if let Err(error) = attribute.parse_nested_meta(self.reader(cx, &mut read)) {
                cx.push(error);
            }
        }
        first
    }

    /// What [`syn::meta::parser`] calls for each word.
    ///
    /// A misspelt word is reported and then read as the word that was meant, so that its value is checked as well
    /// and the word is not reported as missing.
    pub(crate) fn reader(
        &self,
        cx: &Ctxt,
        mut read: impl FnMut(&Word<'_>),
    ) -> impl FnMut(ParseNestedMeta<'_>) -> Result<()> {
        move |meta| {
            let ParseNestedMeta { path, input, .. } = meta;
            let exact = self.words.iter().find(|symbol| path == **symbol);
            let word = exact.copied().or_else(|| self.unknown(cx, &path));
            if let Some(symbol) = word {
                read(&Word { symbol, path: &path, misspelt: exact.is_none(), input });
            } else {
                skip_word(input);
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                cx.push(input.error("expected `,`"));
                skip_word(input);
            }
            Ok(())
        }
    }

    /// Reports a word that is not in the list, and returns what was probably meant.
    fn unknown(&self, cx: &Ctxt, path: &Path) -> Option<Symbol> {
        let written = path.to_token_stream().to_string().replace(' ', "");
        let attribute = self.attribute;
        if self.reserved.iter().any(|symbol| path == symbol) {
            let words = self.list();
            cx.error(path, format_args!("`{written}` is not supported yet; #[{attribute}(...)] takes {words}"));
            return None;
        }
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

/// One `word` or `word = value`.
pub(crate) struct Word<'a> {
    pub(crate) symbol: Symbol,
    pub(crate) path: &'a Path,
    misspelt: bool,
    input: ParseStream<'a>,
}

impl Word<'_> {
    /// The value behind `=`; `shape` is what a right one looks like, for the error.
    pub(crate) fn value<T: Parse>(&self, shape: &str) -> Result<T> {
        let symbol = self.symbol;
        if !self.input.peek(Token![=]) {
            return Err(self.refuse(format_args!("`{symbol}` needs a value: {symbol} = {shape}")));
        }
        self.input.parse::<Token![=]>()?;
        if self.input.is_empty() || self.input.peek(Token![,]) {
            return Err(self.refuse(format_args!("`{symbol}` needs a value: {symbol} = {shape}")));
        }
        let start = self.input.fork();
        self.input.parse().map_err(|_| {
            let message = format!("`{symbol}` takes another value: {symbol} = {shape}");
            let found: Result<TokenTree> = start.parse();
            found.map_or_else(|error| error, |token| Error::new_spanned(token, message))
        })
    }

    /// A value that is a plain string literal.
    pub(crate) fn string(&self, shape: &str) -> Result<LitStr> {
        let literal: LitStr = self.value(shape)?;
        if literal.suffix().is_empty() {
            Ok(literal)
        } else {
            Err(Error::new(literal.span(), format_args!("unexpected suffix `{}` on a string literal", literal.suffix())))
        }
    }

    /// The path in `crate = ::path`.
    pub(crate) fn krate(&self) -> Result<Path> {
        self.value::<ModPath>("::path::to::the::crate").map(|path| path.0)
    }

    /// An error at the word itself.
    pub(crate) fn refuse(&self, message: impl std::fmt::Display) -> Error {
        Error::new_spanned(self.path, message)
    }
}

/// A value that may be given once.
pub(crate) struct Attr<T> {
    value: Option<T>,
    given: Given,
}

#[derive(PartialEq)]
enum Given {
    No,
    /// Under a name that was reported already; a second one is then no further mistake.
    Misspelt,
    Yes,
}

impl<T> Attr<T> {
    pub(crate) fn none() -> Self {
        Self { value: None, given: Given::No }
    }

    /// Keeps the value of a word, or reports what is wrong with it. A word with a wrong value counts as given.
    pub(crate) fn set(&mut self, cx: &Ctxt, word: &Word<'_>, value: Result<T>) {
        if self.given == Given::Yes && !word.misspelt {
            cx.push(word.refuse(format_args!("`{}` is given twice", word.symbol)));
        }
        self.given = if word.misspelt { Given::Misspelt } else { Given::Yes };
        match value {
            Ok(value) => drop(self.value.get_or_insert(value)),
            Err(error) => {
                cx.push(error);
                // The rest of a value that could not be read says nothing more.
                skip_word(word.input);
            }
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.given != Given::No
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn into_value(self) -> Option<T> {
        self.value
    }
}

/// A path as `use` takes it: `crate`, `self` and `super` are allowed, generic arguments are not.
struct ModPath(Path);

impl Parse for ModPath {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        input.call(Path::parse_mod_style).map(Self)
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
