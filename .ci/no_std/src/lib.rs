//! A static library that links `pinfold-core` and has the panic handler that `std` would bring.
//!
//! It is built and never run. If core, or anything core depends on, links `std`, there are two
//! panic handlers and the build fails.
#![no_std]

extern crate pinfold_core;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

/// An allocator that never has memory: enough to link `alloc`.
struct Empty;

// SAFETY: it hands out nothing, so there is nothing that it could hand out wrongly or free.
unsafe impl GlobalAlloc for Empty {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Empty = Empty;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
