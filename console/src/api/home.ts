/** The address of the service, without a slash at its end. The page's script is at `<home>/console/console.js`. */
export const home = new URL("..", import.meta.url).href.replace(/\/$/, "");
