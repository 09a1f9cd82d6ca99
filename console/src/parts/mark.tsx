/** The mark of the product. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" focusable="false">
    <rect x="1" y="1" width="30" height="30" rx="8" />
    <path d="M6 12c3.3-3 6.7-3 10 0s6.7 3 10 0M6 17.5c3.3-3 6.7-3 10 0s6.7 3 10 0M6 23c3.3-3 6.7-3 10 0s6.7 3 10 0" />
  </svg>
);
