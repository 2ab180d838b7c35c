//! Two programs in one, without any library: what a guest's kernel starts as its first process, and on the host what
//! starts the guest's kernel and ends it when whoever asked for it is gone.

#![no_std]
#![no_main]

mod keeper;
mod system;
mod traffic;

use core::arch::global_asm;

use system::{Text, call3};

global_asm!(".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {begin}", "ud2", begin = sym begin);

/// `stack` has the number of arguments, the arguments, a null, the environment and a null.
unsafe extern "C" fn begin(stack: *const Text) -> ! {
    // SAFETY: that is how the kernel starts a program.
    let (count, arguments) = unsafe { (*stack.cast::<usize>(), stack.add(1)) };
    if call3(system::GETPID, 0, 0, 0) == 1 {
        traffic::serve()
    }
    // SAFETY: the environment follows the null after the arguments.
    unsafe { keeper::keep(arguments.add(1), arguments.add(count + 1)) }
}
