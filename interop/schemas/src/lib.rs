//! Empty: this package only names the one that carries the official schemas.
