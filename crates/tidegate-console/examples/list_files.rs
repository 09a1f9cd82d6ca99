//! Prints the files of the console and their sizes.

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

fn main() {
    println!("{:>9} index.html", tidegate_console::page("").len());
    for file in tidegate_console::FILES {
        println!("{:>9} {}", file.bytes.len(), file.name);
    }
}
