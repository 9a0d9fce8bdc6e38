// The page begins here.
// SPDX-License-Identifier: Apache-2.0
import "./style/main.css";
import { render } from "preact";
import { startFollowing } from "./api/live";
import { App } from "./app";
import { keepSettings } from "./store/settings";
import { load } from "./store/store";
import { answerCopyButtons } from "./ui/copy";

keepSettings();
answerCopyButtons();
render(<App />, document.getElementById("app")!);
void load();
startFollowing();
