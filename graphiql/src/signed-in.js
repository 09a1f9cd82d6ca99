// Where `/auth` sends the window that was opened to sign in: it tells the page that waits.
const answer = Object.fromEntries(new URLSearchParams(location.search));
// The address held a code; a window that stays open need not show it.
history.replaceState(null, "", location.pathname);
new BroadcastChannel("tidegate-sign-in").postMessage(answer);
window.close();
