//! The macro that turns the table of routes into code.

/// Defines the enum of routes, their properties and their handlers.
///
/// A row is `Route: "path", Methods, Access, Surface, Body => handler;`, where the handler is an
/// expression of an async function over the request. The rows of `exact` have paths without names.
/// The rows of `named` have names in their paths, and are tried after all rows of `exact`, in
/// order.
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

        /// The names of the routes as numbers, which are their indexes in [`ROUTES`].
        enum Index {
            $($exact,)*
            $($named,)*
        }

        impl<'p> Route<'p> {
            /// The route with this path, which has no trailing slash.
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

            /// The index of the route in [`ROUTES`].
            pub(crate) const fn index(&self) -> usize {
                match self {
                    $(Self::$exact => Index::$exact as usize,)*
                    $(Self::$named(..) => Index::$named as usize,)*
                }
            }
        }

        /// Serves a request. The future of each handler is boxed separately. One future for all
        /// handlers would be as large as the largest of them, and would be copied for each request.
        pub(crate) fn serve<'a, B>(
            route: &'a Route<'_>,
            $call: Call<'a, B>,
        ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, ApiError>> + Send + 'a>>
        where
            B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
            B::Error: Into<BodyError>,
        {
            match route {
                $(Route::$exact => Box::pin(async move { $handler }),)*
                $(Route::$named($($name),+) => Box::pin(async move { $named_handler }),)*
            }
        }
    };
    (@name $lifetime:lifetime $name:ident) => { Cow<$lifetime, str> };
}

pub(super) use routes;
