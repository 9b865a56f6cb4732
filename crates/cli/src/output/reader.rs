//! Whether anybody still reads standard output. Main function: [`gone`].

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use std::{future::pending, io, thread};
use tokio::sync::oneshot;

/// Ends when nobody reads standard output any more (`| head`). Who waits for something to print
/// would notice only when there is something. Without a pipe it never ends, nor on systems other than
/// Linux: there it is noticed at the next thing that is printed.
pub async fn gone() {
    let (sender, receiver) = oneshot::channel();
    // A thread for which the end of the program does not wait.
    let watching = thread::Builder::new().spawn(move || {
        if wait() {
            // Whoever waited may have gone.
            let _ = sender.send(());
        }
    });
    let heard = match watching {
        Ok(_) => receiver.await.is_ok(),
        Err(_) => false,
    };
    if !heard {
        pending::<()>().await;
    }
}

/// False: it cannot be known.
fn wait() -> bool {
    let out = io::stdout();
    // What is asked for is nothing: Linux tells an end always. Elsewhere a pipe without a reader may
    // not be told of, and a terminal be told of for another reason.
    if cfg!(not(target_os = "linux")) {
        return false;
    }
    let mut asked = [PollFd::new(&out, PollFlags::empty())];
    loop {
        match poll(&mut asked, None) {
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => {
                let told = asked[0].revents();
                return told.intersects(PollFlags::ERR | PollFlags::HUP);
            }
        }
    }
}
