//! Maps of the kernel's BPF (bpf(2), `linux/bpf.h`).

use std::ffi::c_long;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `BPF_MAP_TYPE_SK_STORAGE` and `BPF_MAP_TYPE_STRUCT_OPS`.
pub(crate) const SOCKET_STORAGE: u32 = 24;
pub(crate) const STRUCT_OPS: u32 = 26;

const LOOK_UP: c_long = 1;
const DELETE: c_long = 3;
const NEXT_MAP: c_long = 12;
const OPEN_MAP: c_long = 14;
const INFO: c_long = 15;

/// A map, open.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    pub(crate) kind: u32,
    pub(crate) name: String,
    /// What has described its types, the same for all maps that were loaded together.
    pub(crate) types: u32,
    value_size: usize,
}

/// The kernel's `struct bpf_map_info`; newer kernels have more.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    value_type_of_kernel: u32,
    namespace: [u64; 2],
    types: u32,
    key_type: u32,
    value_type: u32,
    more: u32,
    extra: u64,
}

/// A value is at most so long.
const MOST: usize = 64 * 1024;

/// All maps that the kernel has.
///
/// # Errors
/// The kernel's: mostly that the caller may not (`EPERM`).
pub(crate) fn maps() -> io::Result<Vec<Map>> {
    let mut maps = Vec::new();
    let mut id = 0;
    loop {
        let mut words = [id, 0, 0];
        match call(NEXT_MAP, &mut words) {
            Ok(_) => id = words[1],
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(maps),
            Err(error) => return Err(error),
        }
        // One that is gone by now is none.
        match call(OPEN_MAP, &mut [id, 0, 0]) {
            // SAFETY: the kernel has just made it, and nobody else has it.
            Ok(fd) => maps.push(Map::of(unsafe { OwnedFd::from_raw_fd(fd) })?),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
}

impl Map {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        #[repr(C)]
        struct Request {
            fd: u32,
            length: u32,
            into: u64,
        }
        let mut info = Info::default();
        let into = (&raw mut info).addr() as u64;
        let length = size_of::<Info>() as u32;
        call(INFO, &mut Request { fd: fd.as_raw_fd() as u32, length, into })?;
        let name = info.name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Self {
            kind: info.kind,
            name: String::from_utf8_lossy(name).into_owned(),
            types: info.types,
            value_size: info.value_size as usize,
            fd,
        })
    }

    /// The value at `key`, in maps whose keys are four bytes.
    ///
    /// # Errors
    /// The kernel's: that there is none (`ENOENT`).
    pub(crate) fn value(&self, key: u32) -> io::Result<Vec<u8>> {
        if self.value_size > MOST || !matches!(self.kind, SOCKET_STORAGE | STRUCT_OPS) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut value = vec![0_u8; self.value_size];
        let into = value.as_mut_ptr().addr();
        self.at(LOOK_UP, &key, into)?;
        Ok(value)
    }

    /// The value that belongs to a socket.
    ///
    /// # Errors
    /// The kernel's: that there is none (`ENOENT`).
    pub(crate) fn value_of(&self, socket: RawFd) -> io::Result<Vec<u8>> {
        self.value(socket as u32)
    }

    /// # Errors
    /// The kernel's.
    pub(crate) fn delete(&self, key: u32) -> io::Result<()> {
        self.at(DELETE, &key, 0)
    }

    fn at(&self, command: c_long, key: &u32, value: usize) -> io::Result<()> {
        #[repr(C)]
        struct Request {
            map: u64,
            key: u64,
            value: u64,
            flags: u64,
        }
        let key = (&raw const *key).addr() as u64;
        let map = self.fd.as_raw_fd() as u64;
        call(command, &mut Request { map, key, value: value as u64, flags: 0 }).map(|_| ())
    }
}

/// Asks the kernel. `request` begins as `union bpf_attr` does for `command`, and what it points to is as long as the kernel takes it to be.
fn call<T>(command: c_long, request: &mut T) -> io::Result<RawFd> {
    let (request, length) = (&raw mut *request, size_of::<T>());
    // SAFETY: the kernel reads and writes `length` bytes of the request. Where that has addresses they are those of a key of four bytes, of
    // a value as long as the map says, and of an `Info` with its length, all of which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, request, length) };
    super::done(result as std::ffi::c_int).map(|()| result as RawFd)
}
