import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const NAME = "tidegate.console.theme";
const stored = localStorage.getItem(NAME);

export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");

effect(() => {
  localStorage.setItem(NAME, theme.value);
  document.documentElement.dataset.theme = theme.value;
});

/** Whether the page is dark now. */
export const isDark = (): boolean =>
  theme.value === "dark" || (theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
