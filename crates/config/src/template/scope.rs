//! Variables in scope, by name, with the innermost declaration in front.

/// A number that stands for a variable's name.
pub(super) type Name = u32;

/// The name of `$`.
pub(super) const DOLLAR: Name = 0;

/// A stack of variables that finds the innermost one of a name without a search.
#[derive(Debug)]
pub(super) struct Scope<T> {
    slots: Vec<(Name, T)>,
    /// For each name, the places in `slots` that hold it, innermost last.
    places: Vec<Vec<usize>>,
    /// Slots below this belong to callers and cannot be seen.
    floor: usize,
}

impl<T> Scope<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), places: Vec::new(), floor: 0 }
    }

    pub(super) fn push(&mut self, name: Name, value: T) {
        let index = name as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Vec::new);
        }
        if let Some(places) = self.places.get_mut(index) {
            places.push(self.slots.len());
        }
        self.slots.push((name, value));
    }

    /// A mark to come back to with [`Scope::release`].
    pub(super) fn mark(&self) -> usize {
        self.slots.len()
    }

    /// Forgets what was declared since the mark.
    pub(super) fn release(&mut self, mark: usize) {
        while self.slots.len() > mark {
            let Some((name, _)) = self.slots.pop() else { return };
            if let Some(places) = self.places.get_mut(name as usize) {
                places.pop();
            }
        }
    }

    /// Hides all variables of now; gives back what [`Scope::reveal`] needs to undo it.
    pub(super) fn conceal(&mut self) -> usize {
        std::mem::replace(&mut self.floor, self.slots.len())
    }

    /// Shows again what was hidden.
    pub(super) fn reveal(&mut self, floor: usize) {
        self.floor = floor;
    }

    fn place(&self, name: Name) -> Option<usize> {
        let place = *self.places.get(name as usize)?.last()?;
        (place >= self.floor).then_some(place)
    }

    pub(super) fn get(&self, name: Name) -> Option<&T> {
        self.slots.get(self.place(name)?).map(|(_, value)| value)
    }

    /// Sets the innermost variable of that name; false when there is none.
    pub(super) fn set(&mut self, name: Name, value: T) -> bool {
        let slot = self.place(name).and_then(|place| self.slots.get_mut(place));
        match slot {
            Some(slot) => {
                slot.1 = value;
                true
            }
            None => false,
        }
    }

    /// Sets the variable declared last, or the one so many before it.
    pub(super) fn set_top(&mut self, from_top: usize, value: T) {
        let place = self.slots.len().checked_sub(from_top).filter(|place| *place >= self.floor);
        if let Some(slot) = place.and_then(|place| self.slots.get_mut(place)) {
            slot.1 = value;
        }
    }
}
