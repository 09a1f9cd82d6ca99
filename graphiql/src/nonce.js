// The page's policy takes style elements by nonce only, and Monaco makes some at run time.
// Imported before everything else, for its effect.
const { nonce } = document.querySelector("script[nonce]");
const create = document.createElement;
document.createElement = function createElement(name, options) {
  const element = create.call(this, name, options);
  if (element.localName === "style") element.nonce = nonce;
  return element;
};
