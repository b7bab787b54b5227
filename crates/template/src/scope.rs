//! The variables in scope. Of two declarations with the same name, the innermost counts.

/// The number of a variable's name.
pub(crate) type VariableName = u32;

/// The name of `$`.
pub(crate) const DOLLAR: VariableName = 0;

/// A stack of variables, indexed by name.
#[derive(Debug)]
pub(crate) struct Scope<T> {
    slots: Vec<(VariableName, T)>,
    /// The positions in `slots` of each name, innermost last.
    places: Vec<Vec<usize>>,
    /// The slots before this one belong to callers and are hidden.
    base: usize,
}

impl<T> Scope<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), places: Vec::new(), base: 0 }
    }

    pub(crate) fn push(&mut self, name: VariableName, value: T) {
        let index = name as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Vec::new);
        }
        if let Some(places) = self.places.get_mut(index) {
            places.push(self.slots.len());
        }
        self.slots.push((name, value));
    }

    /// A mark for [`Scope::release`].
    pub(crate) fn mark(&self) -> usize {
        self.slots.len()
    }

    /// Drops the variables declared since the mark.
    pub(crate) fn release(&mut self, mark: usize) {
        while self.slots.len() > mark {
            let Some((name, _)) = self.slots.pop() else { return };
            if let Some(places) = self.places.get_mut(name as usize) {
                places.pop();
            }
        }
    }

    /// Hides all variables. Returns the argument for [`Scope::restore`].
    pub(crate) fn hide(&mut self) -> usize {
        std::mem::replace(&mut self.base, self.slots.len())
    }

    /// Undoes [`Scope::hide`].
    pub(crate) fn restore(&mut self, base: usize) {
        self.base = base;
    }

    fn place(&self, name: VariableName) -> Option<usize> {
        let place = *self.places.get(name as usize)?.last()?;
        (place >= self.base).then_some(place)
    }

    pub(crate) fn get(&self, name: VariableName) -> Option<&T> {
        self.slots.get(self.place(name)?).map(|(_, value)| value)
    }

    /// Sets the innermost variable of that name. Returns false if there is none.
    pub(crate) fn set(&mut self, name: VariableName, value: T) -> bool {
        let slot = self.place(name).and_then(|place| self.slots.get_mut(place));
        match slot {
            Some(slot) => {
                slot.1 = value;
                true
            }
            None => false,
        }
    }

    /// Sets the `from_top`th variable, counted from the last declaration.
    pub(crate) fn set_top(&mut self, from_top: usize, value: T) {
        let place = self.slots.len().checked_sub(from_top).filter(|place| *place >= self.base);
        if let Some(slot) = place.and_then(|place| self.slots.get_mut(place)) {
            slot.1 = value;
        }
    }
}
