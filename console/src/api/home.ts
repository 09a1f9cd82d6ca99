/** The URL of the service, without a trailing slash. The page's script is at `<home>/console/console.js`. */
export const home = new URL("..", import.meta.url).href.replace(/\/$/, "");
