//! One word of an attribute, and its value.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Path, Result, Token};

use super::ctxt::Ctxt;
use super::symbol::Symbol;
use super::vocabulary::skip_word;

/// One `word` or `word = value`.
pub(crate) struct Word<'a> {
    pub(crate) symbol: Symbol,
    /// What the user wrote, for errors.
    pub(crate) at: TokenStream,
    /// It was reported already, and is taken for the word that was meant.
    pub(super) slip: bool,
    /// Only the value is there.
    pub(super) bare: bool,
    pub(super) input: ParseStream<'a>,
}

impl Word<'_> {
    /// The value behind `=`; `shape` is what a right one looks like, for the error.
    pub(crate) fn value<T: Parse>(&self, shape: &str) -> Result<T> {
        let given = self.bare || self.input.peek(Token![=]);
        self.input.parse::<Option<Token![=]>>()?;
        if !given || self.input.is_empty() || self.input.peek(Token![,]) {
            return Err(self.refuse(format_args!("`{0}` needs a value: {0} = {shape}", self.symbol)));
        }
        let start = self.input.fork();
        self.input.parse().map_err(|_| {
            let message = format!("`{0}` takes another value: {0} = {shape}", self.symbol);
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
            Err(Error::new(
                literal.span(),
                format_args!("unexpected suffix `{}` on a string literal", literal.suffix()),
            ))
        }
    }

    /// The path in `crate = ::path`.
    pub(crate) fn krate(&self) -> Result<Path> {
        self.value::<ModPath>("::path::to::the::crate").map(|path| path.0)
    }

    /// A word that says everything by being there.
    pub(crate) fn flag(&self) -> Result<()> {
        if self.input.is_empty() || self.input.peek(Token![,]) {
            return Ok(());
        }
        Err(self.refuse(format_args!("`{}` takes no value; write the word alone", self.symbol)))
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> ParseStream<'_> {
        self.input
    }

    /// An error at the word itself.
    pub(crate) fn refuse(&self, message: impl std::fmt::Display) -> Error {
        Error::new_spanned(&self.at, message)
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
    /// By a word that was reported already; a second one is then no further mistake.
    BySlip,
    Yes,
}

impl<T> Attr<T> {
    pub(crate) fn none() -> Self {
        Self { value: None, given: Given::No }
    }

    /// Keeps the value of a word, or reports what is wrong with it. A word with a wrong value counts as given.
    pub(crate) fn set(&mut self, cx: &Ctxt, word: &Word<'_>, value: Result<T>) {
        if self.given == Given::Yes && !word.slip {
            cx.push(word.refuse(format_args!("`{}` is given twice", word.symbol)));
        }
        self.given = if word.slip { Given::BySlip } else { Given::Yes };
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
