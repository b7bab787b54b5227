//! Requests of users, and who handles them (X2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::effect::Effect;
use crate::request::{Refusal, Reply, Request, RequestId};
use crate::rules::by_hand::no_such_job;
use crate::supervisor::Core;

impl Core {
    pub(crate) fn request(&mut self, id: RequestId, request: Request) {
        let reply = match request {
            // Answered when it is done.
            Request::Reload(plan) => return self.request_reload(id, plan),
            Request::RollingRestart(jobs) => return self.request_rolling_restart(id, jobs),
            Request::Scale(name, count) => match self.next_plan().scaled(&name, count) {
                Ok(plan) => return self.request_plan(id, Box::new(plan), false),
                Err(error) => Reply::Refused(Refusal::Scale(error)),
            },
            Request::Maintenance(on) => self.set_maintenance(on),
            Request::SetVariables(variables) => {
                self.set_variables(variables);
                Reply::Done("set".into())
            }
            Request::Several(requests) => self.several(requests),
            request => self.request_about_job(&request),
        };
        self.effects.push(Effect::Reply { id, reply });
    }

    fn request_about_job(&mut self, request: &Request) -> Reply {
        match request {
            Request::Start(job) => self.request_for_job(*job, Self::request_start),
            Request::Stop(job) => self.request_for_job(*job, Self::request_stop),
            Request::Restart(job) => self.request_for_job(*job, Self::request_restart),
            Request::Signal(job, signal) if self.has_job(*job) => self.request_signal(*job, *signal),
            _ => no_such_job(),
        }
    }

    fn several(&mut self, requests: Vec<Request>) -> Reply {
        let mut replies = Vec::new();
        for request in requests {
            if let Request::Start(job)
            | Request::Stop(job)
            | Request::Restart(job)
            | Request::Signal(job, _) = request
            {
                replies.push((job, self.request_about_job(&request)));
            }
        }
        Reply::Jobs(self.job_replies(replies))
    }
}
