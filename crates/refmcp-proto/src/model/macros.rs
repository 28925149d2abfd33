//! Macros that keep the model short: JSON objects, chainable setters, enumerations open to unknown names, unions.

/// Declares a struct that is a JSON object on the wire, with camelCase names. All members are public. What each kind of
/// member is written as is said here once:
///
/// - `name: T` is required.
/// - `name?: T` is an `Option<T>` that is left out when `None`, and has a chainable setter.
/// - `_meta: T` is the optional member `meta`, `_meta` on the wire.
/// - `..result` stands for `resultType` and `_meta` of a result, `..cacheable_result` for `ttlMs` and `cacheScope` besides.
///
/// Every object ends in `extra`, which keeps unknown members over a round trip.
macro_rules! json_object {
    ($(#[$outer:meta])* pub struct $type:ident { $($members:tt)* }) => {
        json_object! { @members $type [$(#[$outer])*] [] [] $($members)* }
    };
    (@members $type:ident $outer:tt $fields:tt $setters:tt ..cacheable_result) => {
        json_object! { @members $type $outer $fields $setters
            /// How many milliseconds the result stays fresh.
            ttl_ms?: u64,
            /// Which clients may share the cached result.
            cache_scope?: $crate::model::CacheScope,
            ..result
        }
    };
    (@members $type:ident $outer:tt $fields:tt $setters:tt ..result) => {
        json_object! { @members $type $outer $fields $setters
            /// Whether the result is complete or requires input.
            result_type?: $crate::model::ResultType,
            _meta: $crate::model::ResultMeta,
        }
    };
    (@members $type:ident $outer:tt $fields:tt $setters:tt _meta: $ty:ty, $($rest:tt)*) => {
        json_object! { @members $type $outer $fields $setters
            /// Metadata, `_meta` on the wire.
            #[serde(rename = "_meta")]
            meta?: $ty,
            $($rest)*
        }
    };
    (@members $type:ident $outer:tt [$($fields:tt)*] [$($setters:tt)*]
        $(#[$attribute:meta])* $name:ident?: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @members $type $outer
            [
                $($fields)*
                $(#[$attribute])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$ty>,
            ]
            [$($setters)* #[doc = concat!("Sets `", stringify!($name), "`.")] $name: $ty,]
            $($rest)*
        }
    };
    (@members $type:ident $outer:tt [$($fields:tt)*] $setters:tt
        $(#[$attribute:meta])* $name:ident: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @members $type $outer
            [$($fields)* $(#[$attribute])* pub $name: $ty,] $setters $($rest)*
        }
    };
    (@members $type:ident [$($outer:tt)*] [$($fields:tt)*] [$($setters:tt)*]) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        $($outer)*
        pub struct $type {
            $($fields)*
            /// Members this model does not name.
            #[serde(flatten)]
            pub extra: $crate::model::Extra,
        }

        impl $type {
            setters! { $($setters)* }
        }
    };
}

/// Writes chainable setters for optional members; each takes what converts into the member's type.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $ty:ty),* $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: impl Into<$ty>) -> Self {
                self.$name = Some($name.into());
                self
            }
        )*
    };
}

/// Writes an enumeration of names that keeps a name it does not know as `Other`, so that a peer which is
/// ahead of this model can still be read.
macro_rules! open_enum {
    ($(#[$outer:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        $vis enum $type {
            $($(#[$doc])* $variant,)*
            /// A name this model does not know, as it came.
            Other(String),
        }

        impl $type {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<String> for $type {
            fn from(name: String) -> Self {
                match name.as_str() {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name),
                }
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self::from(name.to_owned())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

/// Writes `From` for the variants of a union: `Type => Variant`, in a `Box` where the variant has one.
macro_rules! from_variants {
    ($union:ident { $($type:ty => $variant:ident),* $(,)? }) => {
        $(
            impl From<$type> for $union {
                fn from(value: $type) -> Self {
                    Self::$variant(value.into())
                }
            }
        )*
    };
}
