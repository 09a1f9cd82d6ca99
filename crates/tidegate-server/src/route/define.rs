//! The macro that turns the table of routes into code.

/// Defines the enum of routes, their properties, and what serves them.
///
/// A row is `Route: "path", Methods, Access, Surface, Body => handler;`, where the handler is an
/// expression over the request, an expression of an async function. The rows of `exact` have paths
/// without names. Those of `named` are tried after them, in order.
macro_rules! routes {
    (
        |$call:ident|
        exact { $(
            $exact:ident: $path:literal $(| $alias:literal)*,
            $methods:ident, $access:ident, $surface:ident, $body:ident => $handler:expr;
        )* }
        named { $(
            $named:ident($($name:ident),+): $template:literal,
            $named_methods:ident, $named_access:ident, $named_surface:ident, $named_body:ident
            => $named_handler:expr;
        )* }
    ) => {
        /// The route of a request. Names are percent-decoded.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Route<'p> {
            $(#[doc = $path] $exact,)*
            $(#[doc = $template] $named($(routes!(@name 'p $name)),+),)*
        }

        /// The properties of the routes.
        pub(crate) const ROUTES: &[Properties] = &[
            $(Properties {
                path: $path,
                methods: Methods::$methods,
                access: Access::$access,
                surface: Surface::$surface,
                body: BodyLimit::$body,
            },)*
            $(Properties {
                path: $template,
                methods: Methods::$named_methods,
                access: Access::$named_access,
                surface: Surface::$named_surface,
                body: BodyLimit::$named_body,
            },)*
        ];

        /// The places of the routes in [`ROUTES`].
        enum Index {
            $($exact,)*
            $($named,)*
        }

        impl<'p> Route<'p> {
            /// The route of a path without its trailing slash.
            fn of_path(path: &'p str) -> Option<Self> {
                match path {
                    $($path $(| $alias)* => return Some(Self::$exact),)*
                    _ => {}
                }
                $(if path.starts_with(const { template::prefix($template) })
                    && let Some(mut names) = template::names($template, path)
                {
                    $(let $name = names.next()?;)+
                    return Some(Self::$named($($name),+));
                })*
                None
            }

            /// The place of the route in [`ROUTES`].
            pub(crate) const fn index(&self) -> usize {
                match self {
                    $(Self::$exact => Index::$exact as usize,)*
                    $(Self::$named(..) => Index::$named as usize,)*
                }
            }
        }

        /// Serves a request.
        pub(crate) async fn serve<B>(
            route: &Route<'_>,
            $call: Call<'_, B>,
        ) -> Result<Response<Body>, Failure>
        where
            B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
            B::Error: Into<BodyError>,
        {
            match route {
                $(Route::$exact => $handler,)*
                $(Route::$named($($name),+) => $named_handler,)*
            }
        }
    };
    (@name $lifetime:lifetime $name:ident) => { Cow<$lifetime, str> };
}

pub(super) use routes;
