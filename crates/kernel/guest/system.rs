//! Linux's system calls, by number: neither program is linked with a C library.

use core::arch::asm;

pub fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel checks every argument; callers pass pointers to memory that outlives the call.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

pub fn call3(number: usize, one: usize, two: usize, three: usize) -> isize {
    call(number, [one, two, three, 0, 0, 0])
}

pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const OPEN: usize = 2;
pub const CLOSE: usize = 3;
pub const IOCTL: usize = 16;
pub const PIPE: usize = 22;
pub const DUP2: usize = 33;
pub const GETPID: usize = 39;
pub const SOCKET: usize = 41;
pub const CONNECT: usize = 42;
pub const ACCEPT: usize = 43;
pub const SENDTO: usize = 44;
pub const RECVFROM: usize = 45;
pub const SHUTDOWN: usize = 48;
pub const BIND: usize = 49;
pub const LISTEN: usize = 50;
pub const SETSOCKOPT: usize = 54;
pub const GETSOCKOPT: usize = 55;
pub const FORK: usize = 57;
pub const EXECVE: usize = 59;
pub const WAIT4: usize = 61;
pub const KILL: usize = 62;
pub const SETPGID: usize = 109;
pub const CHDIR: usize = 80;
pub const SETSID: usize = 112;
pub const PERSONALITY: usize = 135;
pub const PRCTL: usize = 157;
pub const SCHED_SETSCHEDULER: usize = 144;
pub const CHROOT: usize = 161;
pub const MOUNT: usize = 165;
pub const PTRACE: usize = 101;
pub const WAITID: usize = 247;
pub const PROCESS_VM_READV: usize = 310;
pub const GETDENTS64: usize = 217;
pub const CLOCK_NANOSLEEP: usize = 230;
pub const CLOCK_GETTIME: usize = 228;
pub const EXIT_GROUP: usize = 231;
pub const UNLINKAT: usize = 263;

/// Ends the program.
pub fn exit(code: usize) -> ! {
    loop {
        call3(EXIT_GROUP, code, 0, 0);
    }
}

/// A text that ends with a zero byte, or null.
#[derive(Clone, Copy)]
pub struct Text(pub *const u8);

impl Text {
    pub const fn of(bytes: &'static [u8]) -> Self {
        assert!(bytes[bytes.len() - 1] == 0);
        Self(bytes.as_ptr())
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// The core library names it, though nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// What the compiler calls to copy, fill and compare.
mod memory {
    use core::arch::asm;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: the compiler passes two pieces of memory of that length.
        unsafe {
            asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") len => _, options(nostack));
        }
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            asm!("rep stosb", inout("rdi") to => _, in("al") byte as u8, inout("rcx") len => _, options(nostack));
        }
        to
    }
}
