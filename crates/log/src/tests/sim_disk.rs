//! A disk in memory that keeps apart what was written and what is durable, and whose power can
//! be cut at any step: what was not synced is then dropped, kept or torn, sector by sector.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile};
use crate::shared::lock;

const SECTOR: usize = 512;

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::SetLen(len) => content.resize(*len, 0),
        }
    }

    /// The parts of which any may reach the disk without the others.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, bytes } = self else {
            return vec![self.clone()];
        };
        let mut parts = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let len = (SECTOR - (offset + at) % SECTOR).min(bytes.len() - at);
            parts.push(Self::Write { offset: offset + at, bytes: bytes[at..at + len].to_vec() });
            at += len;
        }
        parts
    }
}

#[derive(Debug, Clone)]
enum DirChange {
    CreateDir(PathBuf),
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl DirChange {
    /// The folder that is changed. Nothing here moves files between folders.
    fn dir(&self) -> Option<&Path> {
        match self {
            Self::CreateDir(path)
            | Self::Create(path, _)
            | Self::Rename(path, _)
            | Self::Remove(path) => path.parent(),
        }
    }
}

/// What folders hold.
#[derive(Debug, Clone, Default)]
struct Tree {
    dirs: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
}

impl Tree {
    fn apply(&mut self, change: &DirChange) {
        match change {
            DirChange::CreateDir(path) => _ = self.dirs.insert(path.clone()),
            DirChange::Create(path, inode) => _ = self.names.insert(path.clone(), *inode),
            DirChange::Rename(from, to) => {
                if let Some(inode) = self.names.remove(from) {
                    self.names.insert(to.clone(), inode);
                }
            }
            DirChange::Remove(path) => _ = self.names.remove(path),
        }
    }

    fn has_dir(&self, dir: &Path) -> bool {
        dir == Path::new("/")
            || (self.dirs.contains(dir) && dir.parent().is_none_or(|above| self.has_dir(above)))
    }

    /// Nothing is in a folder that is not there.
    fn drop_unreachable(&mut self) {
        let all = self.clone();
        self.dirs.retain(|dir| all.has_dir(dir));
        self.names.retain(|path, _| path.parent().is_some_and(|dir| all.has_dir(dir)));
    }
}

#[derive(Debug, Clone, Default)]
struct Inode {
    /// What a reader sees.
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone, Default)]
struct State {
    inodes: Vec<Inode>,
    tree: Tree,
    durable_tree: Tree,
    pending_tree: Vec<DirChange>,
    steps: u64,
    cut_at: Option<u64>,
    fail_at: Option<u64>,
    capacity: Option<usize>,
    /// Paths that can be neither opened nor created.
    denied: BTreeSet<PathBuf>,
    lies: bool,
}

impl State {
    /// Counts a step; fails when the power is cut by then.
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if self.cut_at.is_some_and(|cut| self.steps > cut) {
            return Err(io::Error::other("the power is off"));
        }
        if self.fail_at == Some(self.steps) {
            return Err(io::Error::other("input/output error"));
        }
        Ok(())
    }

    fn inode(&mut self, path: &Path) -> io::Result<usize> {
        self.tree.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change_tree(&mut self, change: DirChange) {
        self.tree.apply(&change);
        self.pending_tree.push(change);
    }

    fn check_denied(&self, path: &Path) -> io::Result<()> {
        if self.denied.contains(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    /// Fails when there is no space for so many bytes more.
    fn check_space(&self, more: usize) -> io::Result<()> {
        let used: usize =
            self.tree.names.values().map(|inode| self.inodes[*inode].seen.len()).sum();
        match self.capacity {
            Some(capacity) if used + more > capacity => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

/// Small, fast, and the same everywhere: xorshift64*.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>, Arc<Mutex<()>>, Arc<Mutex<()>>);

impl SimDisk {
    pub(super) fn steps(&self) -> u64 {
        lock(&self.0).steps
    }

    /// Lets `steps` more steps happen, then nothing.
    pub(super) fn cut_after(&self, steps: u64) {
        let mut state = lock(&self.0);
        state.cut_at = Some(state.steps + steps);
    }

    /// Makes just one step fail, `steps` from now.
    pub(super) fn fail_after(&self, steps: u64) {
        let mut state = lock(&self.0);
        state.fail_at = Some(state.steps + steps + 1);
    }

    /// No step fails from now on.
    pub(super) fn heal(&self) {
        lock(&self.0).fail_at = None;
    }

    /// From now on every sync says that it is done and does nothing.
    pub(super) fn lie(&self) {
        lock(&self.0).lies = true;
    }

    /// Makes every sync wait until the guard is dropped.
    pub(super) fn hold_syncs(&self) -> MutexGuard<'_, ()> {
        lock(&self.1)
    }

    /// Makes checkpoints wait until the guard is dropped.
    pub(super) fn hold_checkpoints(&self) -> MutexGuard<'_, ()> {
        lock(&self.2)
    }

    pub(super) fn set_capacity(&self, bytes: Option<usize>) {
        lock(&self.0).capacity = bytes;
    }

    /// How many bytes all files have.
    pub(super) fn used(&self) -> usize {
        let state = lock(&self.0);
        state.tree.names.values().map(|inode| state.inodes[*inode].seen.len()).sum()
    }

    /// Makes a path one that can be neither opened nor created.
    pub(super) fn deny(&self, path: &Path) {
        lock(&self.0).denied.insert(path.to_owned());
    }

    /// All paths can be opened again.
    pub(super) fn allow_all(&self) {
        lock(&self.0).denied.clear();
    }

    /// The disk as the machine finds it when the power is back.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> Self {
        let mut state = lock(&self.0).clone();
        // Each of the pending changes alone may have made it: half of the time any mix, else all
        // or nothing, which a mix of many would never be.
        let bias = random.next() % 4;
        let survives = |random: &mut Random| match bias {
            0 => false,
            1 => true,
            _ => random.one_in(2),
        };
        let changes = std::mem::take(&mut state.pending_tree);
        for change in changes.iter().filter(|_| survives(random)) {
            state.durable_tree.apply(change);
        }
        state.durable_tree.drop_unreachable();
        state.tree = state.durable_tree.clone();
        for inode in &mut state.inodes {
            for part in std::mem::take(&mut inode.pending).iter().flat_map(Change::sectors) {
                if survives(random) {
                    part.apply(&mut inode.durable);
                }
            }
            inode.seen = inode.durable.clone();
        }
        state.cut_at = None;
        state.fail_at = None;
        Self(Arc::new(Mutex::new(state)), Arc::default(), Arc::default())
    }

    /// Flips one bit of a file, as if the medium had decayed.
    pub(super) fn flip(&self, path: &Path, offset: usize) {
        let mut state = lock(&self.0);
        let inode = state.inode(path).unwrap();
        let inode = &mut state.inodes[inode];
        inode.seen[offset] ^= 0x10;
        inode.durable[offset] ^= 0x10;
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        lock(&self.0).tree.names.keys().cloned().collect()
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let above: Vec<&Path> = dir.ancestors().collect();
        for dir in above.into_iter().rev() {
            let mut state = lock(&self.0);
            if state.tree.has_dir(dir) {
                continue;
            }
            state.step()?;
            state.change_tree(DirChange::CreateDir(dir.to_owned()));
            drop(state);
            self.sync_dir(dir.parent().unwrap())?;
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if path.file_stem().is_some_and(|stem| stem == "checkpoint") {
            drop(lock(&self.2));
        }
        let mut state = lock(&self.0);
        state.step()?;
        state.check_denied(path)?;
        if state.tree.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|dir| state.tree.has_dir(dir)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.change_tree(DirChange::Create(path.to_owned(), inode));
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = lock(&self.0);
        state.step()?;
        state.check_denied(path)?;
        let inode = state.inode(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = lock(&self.0);
        state.step()?;
        let inside = state.tree.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.step()?;
        state.inode(from)?;
        state.change_tree(DirChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.step()?;
        state.inode(path)?;
        state.change_tree(DirChange::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.step()?;
        let changes = std::mem::take(&mut state.pending_tree);
        let (inside, elsewhere): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.dir() == Some(dir));
        state.pending_tree = elsewhere;
        for change in inside {
            state.durable_tree.apply(&change);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl SimFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = lock(&self.disk.0);
        let end = match &change {
            Change::Write { offset, bytes } => offset + bytes.len(),
            Change::SetLen(len) => *len,
        };
        state.check_space(end.saturating_sub(state.inodes[self.inode].seen.len()))?;
        let stepped = state.step();
        // The step at which the power goes may still have reached the disk in part.
        let inode = &mut state.inodes[self.inode];
        change.apply(&mut inode.seen);
        inode.pending.push(change);
        stepped
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.disk.0).inodes[self.inode].seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = lock(&self.disk.0);
        state.step()?;
        let seen = &state.inodes[self.inode].seen;
        let from = usize::try_from(offset).unwrap().min(seen.len());
        let len = buffer.len().min(seen.len() - from);
        buffer[..len].copy_from_slice(&seen[from..from + len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.change(Change::Write { offset, bytes: bytes.to_vec() })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(usize::try_from(len).unwrap()))
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        lock(&self.disk.0).check_space(usize::try_from(len).unwrap())
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        self.write_at(&vec![0; usize::try_from(to - from).unwrap()], from)
    }

    fn forget_cached(&self) {}

    fn sync_data(&self) -> io::Result<()> {
        drop(lock(&self.disk.1));
        let mut state = lock(&self.disk.0);
        let stepped = state.step();
        if state.lies && stepped.is_ok() {
            return Ok(());
        }
        let is_off = state.cut_at.is_some_and(|cut| state.steps > cut);
        let inode = &mut state.inodes[self.inode];
        match stepped {
            Ok(()) => {
                for change in std::mem::take(&mut inode.pending) {
                    change.apply(&mut inode.durable);
                }
                Ok(())
            }
            // What Linux does: the pages count as clean, are still seen, and are not on the disk.
            Err(error) if !is_off => {
                inode.pending.clear();
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}
