//! On the host: starts a guest's kernel, and ends it with all its processes as soon as standard input ends, which it
//! does when the process that started this one ends, however that happens.

use crate::system::{self, Text, call, call3, exit};

const SIGKILL: usize = 9;
const PR_SET_PDEATHSIG: usize = 1;
const PR_SET_CHILD_SUBREAPER: usize = 36;
const ADDR_NO_RANDOMIZE: usize = 0x004_0000;
const SCHED_BATCH: usize = 3;
const O_DIRECTORY: usize = 0o200_000;
const AT_REMOVEDIR: usize = 0x200;
/// Under this number the guest has the folder of its sockets, so that its command line is always the same.
const FOLDER: usize = 9;

/// It starts the kernel when it is told to by a byte. `arguments` are the folder of the sockets, the kernel and the kernel's arguments.
///
/// # Safety
/// Both lists end with a null.
pub unsafe fn keep(arguments: *const Text, environment: *const Text) -> ! {
    // SAFETY: as the caller says.
    let (folder, kernel) = unsafe { (*arguments, *arguments.add(1)) };
    if folder.is_null() || kernel.is_null() {
        exit(100);
    }
    call3(system::SETSID, 0, 0, 0);
    call(system::PRCTL, [PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0]);
    if !is_told() {
        empty(folder.0, 4);
        exit(0);
    }
    let child = call3(system::FORK, 0, 0, 0);
    if child == 0 {
        call3(system::SETPGID, 0, 0, 0);
        call(system::PRCTL, [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0]);
        // A guest that is woken does not take the processor from whoever woke it and has more to say: it begins when that one waits.
        let priority = 0u32;
        call3(system::SCHED_SETSCHEDULER, 0, SCHED_BATCH, (&raw const priority) as usize);
        call3(system::PERSONALITY, ADDR_NO_RANDOMIZE, 0, 0);
        let opened = call3(system::OPEN, folder.0 as usize, O_DIRECTORY, 0) as usize;
        call3(system::DUP2, opened, FOLDER, 0);
        if opened != FOLDER {
            call3(system::CLOSE, opened, 0, 0);
        }
        let nothing = call3(system::OPEN, Text::of(b"/dev/null\0").0 as usize, 0, 0) as usize;
        call3(system::DUP2, nothing, 0, 0);
        // SAFETY: the list goes on after its second entry.
        let arguments = unsafe { arguments.add(1) };
        call3(system::EXECVE, kernel.0 as usize, arguments as usize, environment as usize);
        exit(127);
    }
    if child < 0 {
        exit(100);
    }
    // The child does the same: whoever comes first, the group is there when it is to be ended.
    call3(system::SETPGID, child as usize, child as usize, 0);
    // Whoever reads standard output learns the group that is to be ended if this process is.
    let number = (child as u32).to_le_bytes();
    call3(system::WRITE, 1, number.as_ptr() as usize, number.len());
    while is_told() {
        tell_of(child as usize);
    }
    call3(system::KILL, child.wrapping_neg() as usize, SIGKILL, 0);
    call3(system::KILL, child as usize, SIGKILL, 0);
    const ANY: usize = usize::MAX;
    const WAIT_ALL: usize = 0x4000_0000;
    while call(system::WAIT4, [ANY, 0, WAIT_ALL, 0, 0, 0]) > 0 {}
    empty(folder.0, 4);
    exit(0)
}

/// How many words of its stack are told.
const STACK: usize = 256;

/// Says on standard input, which is a socket, what the kernel does: whether it has ended (1), how (as a signal's cause has it) and
/// with which number; or its instruction, and its stack.
fn tell_of(child: usize) {
    const BY_NUMBER: usize = 1;
    const EXITED_AND_LEFT: usize = 4 | 1 | 0x100_0000;
    const WAIT_ALL: usize = 0x4000_0000;
    const SEIZE: usize = 0x4206;
    const INTERRUPT: usize = 0x4207;
    const REGISTERS: usize = 12;
    const DETACH: usize = 17;
    let mut told = [0u64; 4 + STACK];
    let mut cause = [0u32; 32];
    let place = cause.as_mut_ptr() as usize;
    call(system::WAITID, [BY_NUMBER, child, place, EXITED_AND_LEFT, 0, 0]);
    if cause[4] == child as u32 {
        (told[0], told[1], told[2]) = (1, u64::from(cause[2]), u64::from(cause[6]));
    } else if call(system::PTRACE, [SEIZE, child, 0, 0, 0, 0]) == 0 {
        call(system::PTRACE, [INTERRUPT, child, 0, 0, 0, 0]);
        let mut status = 0u32;
        let stopped = call(system::WAIT4, [child, (&raw mut status) as usize, WAIT_ALL, 0, 0, 0]);
        let mut registers = [0u64; 27];
        if stopped > 0 && status & 0xff == 0x7f {
            call(system::PTRACE, [REGISTERS, child, 0, registers.as_mut_ptr() as usize, 0, 0]);
            let (instruction, stack) = (registers[16], registers[19]);
            told[3] = instruction;
            let room = told[4..].as_mut_ptr() as usize;
            // Near the end of the stack there is less.
            for words in [STACK, 64, 16] {
                let own = [room, 8 * words];
                let its = [stack as usize, 8 * words];
                let both = [own.as_ptr() as usize, 1, its.as_ptr() as usize, 1, 0];
                let [one, n, other, m, flags] = both;
                if call(system::PROCESS_VM_READV, [child, one, n, other, m, flags]) > 0 {
                    break;
                }
            }
            call(system::PTRACE, [DETACH, child, 0, 0, 0, 0]);
        }
    }
    call3(system::WRITE, 0, told.as_ptr() as usize, 8 * told.len());
}

/// Waits for a byte on standard input; false if it has ended.
fn is_told() -> bool {
    const INTERRUPTED: isize = -4;
    let mut byte = 0u8;
    loop {
        let got = call3(system::READ, 0, (&raw mut byte) as usize, 1);
        if got != INTERRUPTED {
            return got > 0;
        }
    }
}

/// Removes what is in a folder, and the folder.
fn empty(path: *const u8, depth: usize) {
    let opened = call3(system::OPEN, path as usize, O_DIRECTORY, 0);
    if opened < 0 {
        return;
    }
    clear(opened as usize, depth);
    call3(system::CLOSE, opened as usize, 0, 0);
    const AT_FDCWD: usize = -100isize as usize;
    call3(system::UNLINKAT, AT_FDCWD, path as usize, AT_REMOVEDIR);
}

fn clear(folder: usize, depth: usize) {
    let mut entries = [0u8; 2048];
    loop {
        let read = call3(system::GETDENTS64, folder, entries.as_mut_ptr() as usize, entries.len());
        if read <= 0 {
            return;
        }
        let mut at = 0;
        while at + 19 < read as usize {
            let length = u16::from_le_bytes([entries[at + 16], entries[at + 17]]) as usize;
            let (is_folder, name) = (entries[at + 18] == 4, &entries[at + 19..at + length]);
            if !matches!(name, [b'.', 0, ..] | [b'.', b'.', 0, ..]) {
                if is_folder && depth > 0 {
                    const OPENAT: usize = 257;
                    let inner =
                        call(OPENAT, [folder, name.as_ptr() as usize, O_DIRECTORY, 0, 0, 0]);
                    if inner >= 0 {
                        clear(inner as usize, depth - 1);
                        call3(system::CLOSE, inner as usize, 0, 0);
                    }
                }
                let how = if is_folder { AT_REMOVEDIR } else { 0 };
                call3(system::UNLINKAT, folder, name.as_ptr() as usize, how);
            }
            at += length;
        }
    }
}
