//! What is exported to an OpenTelemetry collector (T6), without input and output.
//!
//! [`Tracer`] turns the steps of the core into spans: the life of a container is one trace. The other modules write spans, log
//! records and metrics as protobuf, keep them in a bounded [`Buffer`] until they are sent, and decide what follows from the
//! answers of the collector ([`Delivery`]).
//!
//! Protobuf is written by hand, because a line of a job goes straight from the buffer of its pipe into the request, and
//! generated messages would copy it several times. The tests read everything with the messages that are generated from the
//! official definitions.
#![forbid(unsafe_code)]

mod buffer;
mod delivery;
mod ids;
mod log_record;
mod metric;
mod request;
mod response;
mod span;
mod tracer;
mod wire;

pub use buffer::{Batch, Buffer};
pub use delivery::{Delivery, DeliveryOutcome, ExportKind, Next};
pub use ids::{Ids, SpanId, SpanKey, TraceId};
pub use log_record::{LineEncoder, LogRecord, MAX_BODY};
pub use metric::{Metric, NumberPoint, Points, write_metric};
pub use request::{Resource, write_request};
pub use response::{CollectorAnswer, read_answer, read_status_message};
pub use span::{AttributeValue, SpanEvent, TraceSpan};
pub use tracer::{CoreStep, Tracer};
