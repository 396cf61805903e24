//! Endpoints: what is at a path, and how it is described.
//!
//! The router and the OpenAPI document are made of one list, so that nothing can be called that is
//! not described, and nothing is described that is not there.

mod document;
mod operation;

pub(crate) use document::get_document;
pub(crate) use operation::{Binary, Operation};

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{self, MethodRouter};

use crate::access::require_admin;
use crate::state::Server;

/// What answers a method at a path.
pub(crate) struct Endpoint {
    path: &'static str,
    method: Method,
    handler: MethodRouter<Arc<Server>>,
    needs: Needs,
    /// `None`: a page or a part of one, which is for people to look at.
    described: Option<Described>,
}

/// Who may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// One that its handler asks for.
    Token,
    /// One that may administer.
    Admin,
}

struct Described {
    summary: &'static str,
    describe: Describe,
}

type Describe = fn(Operation<'_>) -> Operation<'_>;

impl Endpoint {
    pub(crate) fn get<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, Arc<Server>>,
        summary: &'static str,
        describe: Describe,
    ) -> Self {
        Self::described(path, Method::GET, routing::get(handler), summary, describe)
    }

    pub(crate) fn post<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, Arc<Server>>,
        summary: &'static str,
        describe: Describe,
    ) -> Self {
        Self::described(path, Method::POST, routing::post(handler), summary, describe)
    }

    pub(crate) fn put<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, Arc<Server>>,
        summary: &'static str,
        describe: Describe,
    ) -> Self {
        Self::described(path, Method::PUT, routing::put(handler), summary, describe)
    }

    pub(crate) fn delete<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, Arc<Server>>,
        summary: &'static str,
        describe: Describe,
    ) -> Self {
        Self::described(path, Method::DELETE, routing::delete(handler), summary, describe)
    }

    fn described(
        path: &'static str,
        method: Method,
        handler: MethodRouter<Arc<Server>>,
        summary: &'static str,
        describe: Describe,
    ) -> Self {
        let described = Some(Described { summary, describe });
        Self { path, method, handler, needs: Needs::Token, described }
    }

    /// A page or a part of one, which is in no document.
    pub(crate) fn page<T: 'static>(
        path: &'static str,
        handler: impl Handler<T, Arc<Server>>,
    ) -> Self {
        let (method, handler) = (Method::GET, routing::get(handler));
        Self { path, method, handler, needs: Needs::Nothing, described: None }
    }

    /// One whose handler asks for no token.
    pub(crate) fn for_anyone(self) -> Self {
        Self { needs: Needs::Nothing, ..self }
    }

    /// One that only those may call who may administer.
    pub(crate) fn for_admins(self) -> Self {
        Self { needs: Needs::Admin, ..self }
    }

    /// The router with this endpoint.
    pub(crate) fn add_to(
        self,
        router: Router<Arc<Server>>,
        server: &Arc<Server>,
    ) -> Router<Arc<Server>> {
        let handler = match self.needs {
            Needs::Nothing | Needs::Token => self.handler,
            Needs::Admin => {
                self.handler.route_layer(from_fn_with_state(Arc::clone(server), require_admin))
            }
        };
        router.route(self.path, handler)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_pages_and_their_parts_are_not_described() {
        let all = crate::endpoints();
        let pages = all.iter().filter(|endpoint| endpoint.described.is_none());
        let pages: Vec<_> = pages.map(|endpoint| endpoint.path).collect();
        assert_eq!(pages, ["/", "/page.css", "/page.js", "/explore", "/explore.js"]);
    }
}
