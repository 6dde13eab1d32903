for (const paste of document.querySelectorAll(".paste")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(paste.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  paste.append(button);
}

// A long list of pages begins where the reader is.
const contents = document.querySelector(".contents");
const current = contents?.querySelector("[aria-current]");
if (current) contents.scrollTop = current.offsetTop - contents.clientHeight / 3;
