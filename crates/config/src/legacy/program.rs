//! The main program of the command line.

use containerpilot_core::inserted;
use containerpilot_core::variables::ip_variable;

use crate::decode::Spanned;
use crate::host::Host;
use crate::interfaces::{InterfaceSpec, choose};
use crate::legacy::fields::LegacyFields;
use crate::lower::TELEMETRY_JOB;
use crate::template::{self, Environment};

/// The main program of the command line, and the host it runs on.
#[derive(Clone, Copy)]
pub(crate) struct MainProgram<'a> {
    pub(crate) words: &'a [String],
    pub(crate) host: &'a dyn Host,
}

/// A word of the main program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramWord {
    /// As written.
    pub(crate) given: String,
    /// As rendered.
    pub(crate) rendered: String,
    /// True if the address of a service is part of it.
    pub(crate) has_address: bool,
}

impl MainProgram<'_> {
    /// Renders each word as a template, as in version 2: with the environment and the addresses of the services (P7). If one of
    /// them is not a valid template, all are used as they are.
    pub(crate) fn rendered(self, fields: &LegacyFields) -> Vec<ProgramWord> {
        let addresses = self.addresses(fields);
        let mut without = self.host.environment().clone();
        without.retain(|name, _| !addresses.contains_key(name));
        let mut environment = without.clone();
        environment.extend(addresses);
        let render = |word: &String| {
            let rendered = rendered(word, &environment)?;
            let has_address = self::rendered(word, &without).as_ref() != Some(&rendered);
            Some(ProgramWord { given: word.clone(), rendered, has_address })
        };
        let unrendered =
            |word: &String| ProgramWord { given: word.clone(), rendered: word.clone(), has_address: false };
        let words: Option<Vec<_>> = self.words.iter().map(render).collect();
        words.unwrap_or_else(|| self.words.iter().map(unrendered).collect())
    }

    /// The variables with the addresses of the services. An address that does not exist is reported later.
    fn addresses(self, fields: &LegacyFields) -> Environment {
        let services = fields.services.iter().flat_map(|given| &given.value);
        let services = services
            .filter_map(|service| Some((service.name.as_ref()?.value.as_str(), service.interfaces.as_ref())));
        let telemetry = fields.telemetry.iter().map(|given| (TELEMETRY_JOB, given.value.interfaces.as_ref()));
        let variable = |(name, interfaces): (&str, Option<&Spanned<Vec<Spanned<String>>>>)| {
            let given = interfaces.map(|given| given.value.as_slice()).unwrap_or_default();
            let specs: Result<Vec<_>, _> = given.iter().map(|one| InterfaceSpec::parse(&one.value)).collect();
            let address = choose(&specs.ok()?, self.host.addresses())?;
            Some((ip_variable(name).into_bytes(), address.to_string().into_bytes()))
        };
        inserted(services.chain(telemetry).filter_map(variable))
    }
}

fn rendered(word: &str, environment: &Environment) -> Option<String> {
    String::from_utf8(template::render(word.as_bytes(), environment).ok()?.text).ok()
}
