//! Stands before the C library of a guest's kernel on the host: what looks random follows from `SOJOURN_SEED`, the
//! processes in which the guest's programs run end with the kernel, however that ends, and where the kernel went wrong is said.

#![no_std]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use core::arch::asm;

unsafe extern "C" {
    fn getenv(name: *const u8) -> *const u8;
    fn __errno_location() -> *mut i32;
    fn __sigaction(signal: i32, new: *const Action, old: *mut Action) -> i32;
}

static STATE: AtomicU64 = AtomicU64::new(0);
static IS_SEEDED: AtomicBool = AtomicBool::new(false);

/// As Linux's, from a SplitMix64 generator (Steele, Lea and Flood 2014).
///
/// # Safety
/// `to` has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(to: *mut u8, len: usize, _: u32) -> isize {
    let mut state = match IS_SEEDED.swap(true, Ordering::Relaxed) {
        true => STATE.load(Ordering::Relaxed),
        false => seed(),
    };
    for at in 0..len {
        if at % 8 == 0 {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // SAFETY: the caller gives that many bytes.
        unsafe { to.add(at).write((mixed >> (at % 8 * 8)) as u8) };
    }
    STATE.store(state, Ordering::Relaxed);
    len as isize
}

/// The number in the environment, in decimal.
fn seed() -> u64 {
    // SAFETY: both texts end with a zero byte.
    unsafe {
        let mut text = getenv(c"SOJOURN_SEED".as_ptr().cast());
        let mut seed = 0u64;
        while !text.is_null() && (*text).is_ascii_digit() {
            seed = seed.wrapping_mul(10).wrapping_add(u64::from(*text - b'0'));
            text = text.add(1);
        }
        seed
    }
}

/// As the C library's; but what is traced ends with whoever traces it (`PTRACE_O_EXITKILL`).
///
/// # Safety
/// As of the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(request: i32, process: i32, address: usize, data: usize) -> isize {
    const OLD_SET_OPTIONS: i32 = 21;
    const SET_OPTIONS: i32 = 0x4200;
    const EXIT_KILL: usize = 0x10_0000;
    // What reads a word gives it back.
    const READS: core::ops::RangeInclusive<i32> = 1..=3;
    let mut word = 0usize;
    let (request, data) = match request {
        OLD_SET_OPTIONS | SET_OPTIONS => (SET_OPTIONS, data | EXIT_KILL),
        request if READS.contains(&request) => (request, (&raw mut word) as usize),
        request => (request, data),
    };
    const PTRACE: isize = 101;
    let result: isize;
    // SAFETY: as the caller says.
    unsafe {
        asm!("syscall", inlateout("rax") PTRACE => result, in("rdi") request as isize, in("rsi") process as isize,
            in("rdx") address, in("r10") data, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if result < 0 {
        // SAFETY: the C library gives each thread a place for it.
        unsafe { __errno_location().write(-result as i32) };
        return -1;
    }
    if READS.contains(&request) {
        // SAFETY: as above. A word may be -1, so the caller looks here.
        unsafe { __errno_location().write(0) };
        return word as isize;
    }
    result
}

/// What glibc's functions of this name have first; what follows does not matter here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    handler: usize,
    rest: [u64; 18],
}

static HANDLER: AtomicU64 = AtomicU64::new(0);

/// As the C library's; but where a kernel meets an instruction that it can't execute or divides by zero, the place is printed before
/// it panics. Its own trace fails there.
///
/// # Safety
/// As of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: i32, new: *const Action, old: *mut Action) -> i32 {
    const SIGILL: i32 = 4;
    const SIGFPE: i32 = 8;
    if new.is_null() || !matches!(signal, SIGILL | SIGFPE) {
        // SAFETY: as the caller says.
        return unsafe { __sigaction(signal, new, old) };
    }
    // SAFETY: as the caller says.
    let mut own = unsafe { *new };
    // 0 and 1 are no functions.
    if own.handler > 1 {
        HANDLER.store(own.handler as u64, Ordering::Relaxed);
        own.handler = tell as *const () as usize;
    }
    // SAFETY: as the caller says; the copy lives as long as the call.
    unsafe { __sigaction(signal, &raw const own, old) }
}

unsafe extern "C" fn tell(signal: i32, cause: *mut u8, context: *mut u8) {
    /// Where `ucontext_t` has the address of the instruction.
    const INSTRUCTION: usize = 168;
    const WRITE: isize = 1;
    const ERRORS: usize = 2;
    let mut text = *b"\nsojourn: signal at 0x0000000000000000\n";
    let last = text.len() - 2;
    // SAFETY: the kernel of the host passes a context to handlers with three arguments, and the guest's kernel has no others.
    let mut address = unsafe { context.add(INSTRUCTION).cast::<u64>().read() };
    for at in 0..16 {
        let digit = (address & 15) as u8;
        text[last - at] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        address >>= 4;
    }
    // SAFETY: it writes what is in `text`.
    unsafe {
        asm!("syscall", inlateout("rax") WRITE => _, in("rdi") ERRORS, in("rsi") text.as_ptr(), in("rdx") text.len(),
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    let handler = HANDLER.load(Ordering::Relaxed) as usize;
    // SAFETY: it was given as the handler of such a signal.
    unsafe {
        let handler: unsafe extern "C" fn(i32, *mut u8, *mut u8) = core::mem::transmute(handler);
        handler(signal, cause, context);
    }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
